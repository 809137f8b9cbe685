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

// questions is how many of the hub's answers are waited for at once. It remembers them for
// ten seconds, as all others that the gateway asks it.
const questions = 32

// reachable are those of the members whose way in the caller may take: asked for all at
// once, and by name only if that is refused. Of the others it is not told that they exist.
func (h *Handler) reachable(ctx context.Context, caller authorizer.Attributes, members []string) ([]string, error) {
	all, err := h.allowed(ctx, clustergateway.Way(caller, ""))
	if err != nil || all {
		return members, err
	}
	may := make([]bool, len(members))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questions)
	for i, member := range members {
		group.Go(func() error {
			var err error
			may[i], err = h.allowed(ctx, clustergateway.Way(caller, member))
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

// allowed asks the hub. An answer that could not be had is neither a yes nor a no: an
// answer without members that nobody was asked about would be short without saying so.
func (h *Handler) allowed(ctx context.Context, what authorizer.AttributesRecord) (bool, error) {
	decision, _, err := h.authorizer.Authorize(ctx, what)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("asking the hub which members the caller may reach: %w", err))
	}
	return false, nil
}
