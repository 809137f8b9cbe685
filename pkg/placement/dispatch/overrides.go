// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
	"fleetgate.io/fleetgate/pkg/refusal"
)

// misfit refuses overrides that a binding lists and that do not fit what it is bound to.
func misfit(err error) error {
	return refusal.New(placementv1beta1.ReasonOverriddenFailed, "the overrides cannot be applied: %w", err)
}

// overridden returns the group as the binding's member gets it. It keeps its
// parts, also those of which nothing is left: a Work that becomes empty takes
// things off the member, one that goes may let another take its name.
func (r *Reconciler) overridden(ctx context.Context, b placementv1beta1.BindingObject, member *clusterv1beta1.MemberCluster, group *snapshot.Group) (*snapshot.Group, error) {
	if !hasOverrides(b) {
		return group, nil
	}
	set, err := override.Named(ctx, r.Client, b.GetSpec().ClusterResourceOverrideSnapshots, b.GetSpec().ResourceOverrideSnapshots)
	if err != nil {
		return nil, misfit(err)
	}
	changed := &snapshot.Group{Index: group.Index, Resources: group.Resources}
	for _, part := range group.Parts {
		before := part.Manifests
		if part.Manifests, err = set.Apply(part.Manifests, override.MemberOf(member)); err == nil {
			err = sameChart(part, before)
		}
		if refusal.Of(err) != nil {
			return nil, err // The rules fit, their outcome does not: that is the Work's trouble.
		}
		if err != nil {
			return nil, misfit(err)
		}
		if part.Hash, err = snapshot.Hash(part.Manifests); err != nil {
			return nil, err
		}
		changed.Parts = append(changed.Parts, part)
	}
	return changed, nil
}

func hasOverrides(b placementv1beta1.BindingObject) bool {
	return len(b.GetSpec().ClusterResourceOverrideSnapshots)+len(b.GetSpec().ResourceOverrideSnapshots) > 0
}

// overriddenBindings are the bindings to a member that have overrides: their
// variables may stand for something of the member.
func (r *Reconciler) overriddenBindings(ctx context.Context, member client.Object) ([]types.NamespacedName, error) {
	return r.bindingsWith(ctx, member, hasOverrides)
}

// bindingsWith are the bindings to a member that are wanted.
func (r *Reconciler) bindingsWith(ctx context.Context, member client.Object, wanted func(placementv1beta1.BindingObject) bool) ([]types.NamespacedName, error) {
	var keys []types.NamespacedName
	for _, list := range []client.ObjectList{&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.ResourceBindingList{}} {
		err := r.Client.List(ctx, list, client.MatchingFields{bindingsByMember: member.GetName()})
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				if b, ok := item.(placementv1beta1.BindingObject); ok && wanted(b) {
					keys = append(keys, client.ObjectKeyFromObject(b))
				}
				return nil
			})
		}
		if err != nil {
			return nil, fmt.Errorf("listing the bindings of member %q: %w", member.GetName(), err)
		}
	}
	return keys, nil
}
