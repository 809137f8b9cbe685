// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// questions limits concurrent reviews on the hub. They are cached for ten seconds, as all reviews
// of the gateway.
const questions = 32

// reachable returns the members that the caller may reach. It asks first for all names at once, and
// the reviewer for each name only if that is refused. A caller does not learn that the others exist.
func (h *Handler) reachable(ctx context.Context, first authorizer.UnconditionalAuthorizer, caller authorizer.Attributes, members []string) ([]string, error) {
	all, err := allowed(ctx, first, clustergateway.ProxyAttributes(caller, ""))
	if err != nil || all {
		return members, err
	}
	may := make([]bool, len(members))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questions)
	for i, member := range members {
		group.Go(func() error {
			var err error
			may[i], err = allowed(ctx, h.hub.Reviews, clustergateway.ProxyAttributes(caller, member))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var some []string
	for i, member := range members {
		if may[i] {
			some = append(some, member)
		}
	}
	return some, nil
}

// allowed asks the hub. A failed review is an error, and not a denial: a response would otherwise
// be incomplete without saying so.
func allowed(ctx context.Context, by authorizer.UnconditionalAuthorizer, what authorizer.AttributesRecord) (bool, error) {
	decision, _, err := by.Authorize(ctx, what)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("asking the hub which members the caller may reach: %w", err))
	}
	return false, nil
}
