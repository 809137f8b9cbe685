// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// sync brings the binding's Works up to date and returns them.
func (r *Reconciler) sync(ctx context.Context, in input) ([]*placementv1beta1.Work, error) {
	group, err := r.contents(ctx, in)
	if err != nil || group == nil {
		return in.works, err
	}
	overrides, err := r.overrides(ctx, in.binding)
	if err != nil {
		return nil, err
	}
	if err := r.Authors.mayHave(in.placement, in.binding.GetSpec().ResourceSnapshotName, group, in.works); err != nil {
		return nil, err
	}
	if err := r.mayDelete(ctx, in, overrides, group); err != nil {
		return nil, err
	}
	parts, err := transform{in, overrides, r.Charts}.apply(group.Parts)
	if err != nil {
		return nil, err
	}
	if err := belongsTo(in.binding.GetNamespace(), parts, r.Scopes); err != nil {
		return nil, err
	}
	desired, err := build(in, group.Index, parts)
	if err != nil {
		return nil, err
	}
	if err := r.mayRender(ctx, in, desired); err != nil {
		return nil, err
	}
	return r.write(ctx, in, desired)
}

// contents reads the snapshots of the binding; nil if they were deleted after its Works were created
// from them. Then the Works stay.
func (r *Reconciler) contents(ctx context.Context, in input) (*snapshot.Group, error) {
	key := types.NamespacedName{Namespace: in.binding.GetNamespace(), Name: in.binding.GetSpec().ResourceSnapshotName}
	group, err := r.Snapshots.Group(ctx, key)
	if apierrors.IsNotFound(err) || errors.Is(err, snapshot.ErrIncomplete) {
		other := func(w *placementv1beta1.Work) bool {
			return w.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation] != key.Name
		}
		if len(in.works) == 0 || slices.ContainsFunc(in.works, other) {
			return nil, unsent("resource snapshot %q: master resource snapshot is not found", key.Name)
		}
		return nil, nil
	}
	if err == nil && group.Fault != nil {
		err = unsent("an envelope cannot be opened: %w", group.Fault)
	}
	return group, err
}

// overrides reads the overrides that the binding lists.
func (r *Reconciler) overrides(ctx context.Context, b placementv1beta1.BindingObject) (override.Set, error) {
	if !hasOverrides(b) {
		return nil, nil
	}
	set, err := override.Named(ctx, r.Client, b.GetSpec().ClusterResourceOverrideSnapshots, b.GetSpec().ResourceOverrideSnapshots)
	if err != nil {
		return nil, misfit(err)
	}
	if key, ok := objects.KeyOf(b); ok {
		if o := set.Foreign(key); o != nil {
			return nil, misfit(fmt.Errorf("override snapshot %q is for another placement; roll the placement out again", o.Snapshot))
		}
	}
	return set, nil
}

// hasOverrides reports whether a binding has overrides. Their variables may depend on the member.
func hasOverrides(b placementv1beta1.BindingObject) bool {
	return len(b.GetSpec().ClusterResourceOverrideSnapshots)+len(b.GetSpec().ResourceOverrideSnapshots) > 0
}
