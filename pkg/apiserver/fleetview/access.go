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

// maxReviews limits concurrent reviews on the hub. They are cached for ten seconds, as all reviews of
// the gateway.
const maxReviews = 32

// reachable returns the members that the caller may reach. It first asks the hub about all names at
// once, and about each name only if that is denied. A caller does not learn that the others exist.
func (h *Handler) reachable(ctx context.Context, first authorizer.UnconditionalAuthorizer, caller authorizer.Attributes, members []string) ([]string, error) {
	all, err := allowed(ctx, first, clustergateway.ProxyAttributes(caller, ""))
	if err != nil || all {
		return members, err
	}
	reaches := make([]bool, len(members))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReviews)
	for i, member := range members {
		group.Go(func() error {
			var err error
			reaches[i], err = allowed(ctx, h.hub.Reviews, clustergateway.ProxyAttributes(caller, member))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var some []string
	for i, member := range members {
		if reaches[i] {
			some = append(some, member)
		}
	}
	return some, nil
}

// allowed asks the hub. A failed review is an error, and not a denial: a response would otherwise
// be incomplete without saying so.
func allowed(ctx context.Context, by authorizer.UnconditionalAuthorizer, access authorizer.AttributesRecord) (bool, error) {
	decision, _, err := by.Authorize(ctx, access)
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("reviewing which members the caller may reach: %w", err))
	}
	return false, nil
}
