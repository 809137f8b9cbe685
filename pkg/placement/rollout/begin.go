// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Begin is for creators of bindings. It binds those of fresh, which are not stored yet, that the
// rollout of the placement would start at once, and leaves the others Scheduled. bindings are all
// existing ones. Under strategy External it binds none, because update runs do.
//
// The pace is kept if the bound ones are stored before the others: a reader of a waiting binding then
// sees all started ones. While some binding already waits, Begin binds none, because the controller may
// be about to start it.
func (r *Reconciler) Begin(ctx context.Context, placement placementv1beta1.PlacementObject, bindings, fresh []placementv1beta1.BindingObject) error {
	if len(fresh) == 0 || placement.GetSpec().Strategy.Type == placementv1beta1.ExternalStrategy {
		return nil
	}
	all := slices.Concat(bindings, fresh)
	now, err := r.read(ctx, client.ObjectKeyFromObject(placement), placement, all)
	if now == nil || err != nil {
		return err
	}
	return now.begin(bindings, fresh)
}

func (s *rolloutInput) begin(bindings, fresh []placementv1beta1.BindingObject) error {
	if slices.ContainsFunc(bindings, waits) {
		return nil
	}
	all := slices.Concat(bindings, fresh)
	slices.SortFunc(all, func(a, b placementv1beta1.BindingObject) int { return cmp.Compare(a.GetName(), b.GetName()) })
	steps, err := s.plan(all)
	if err != nil {
		return err
	}
	for _, b := range steps.Update {
		if slices.Contains(fresh, b) {
			s.bind(b)
		}
	}
	return nil
}

// waits reports whether the rollout has not started with an existing binding.
func waits(b placementv1beta1.BindingObject) bool {
	return b.GetDeletionTimestamp() == nil && b.GetSpec().State == placementv1beta1.BindingScheduled
}
