// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/override"
)

// goal is what a placement's bindings shall be bound to.
type goal struct {
	// snapshot is the latest resource snapshot.
	snapshot string
	// overrides of each member that has any.
	overrides map[string]override.Set
}

// goal finds out what the bindings shall be bound to.
func (r *Reconciler) goal(ctx context.Context, key types.NamespacedName, latest string, bindings []placementv1beta1.BindingObject) (goal, error) {
	members := make([]string, 0, len(bindings))
	for _, b := range bindings {
		members = append(members, b.GetSpec().TargetCluster)
	}
	overrides, err := override.PerMember(ctx, r.Client, key, members, func() ([]placementv1beta1.ResourceIdentifier, error) {
		group, err := r.Snapshots.Group(ctx, types.NamespacedName{Namespace: key.Namespace, Name: latest})
		if err != nil {
			return nil, fmt.Errorf("reading what is selected: %w", err)
		}
		return group.Objects(), nil
	})
	return goal{snapshot: latest, overrides: overrides}, err
}

// version is what a member shall have.
func (g goal) version(member string) string {
	cluster, namespaced := g.overrides[member].Names()
	return version(g.snapshot, cluster, namespaced)
}

// look shows bindings to Plan.
func (g goal) look(brake brake) func(placementv1beta1.BindingObject) Candidate {
	return func(b placementv1beta1.BindingObject) Candidate {
		return candidateOf(b, g.version(b.GetSpec().TargetCluster), brake.holds(b))
	}
}

func (g goal) write(spec *placementv1beta1.ResourceBindingSpec) {
	spec.ResourceSnapshotName = g.snapshot
	spec.ClusterResourceOverrideSnapshots, spec.ResourceOverrideSnapshots = g.overrides[spec.TargetCluster].Names()
}

// everyPlacement queues all placements: an override is for whichever selects what
// it names, which only the placement's snapshot tells.
func (r *Reconciler) everyPlacement() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, changed client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, list := range []client.ObjectList{&placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ResourcePlacementList{}} {
			err := r.Client.List(ctx, list)
			if err == nil {
				err = meta.EachListItem(list, func(item runtime.Object) error {
					if placement, ok := item.(client.Object); ok {
						requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(placement)})
					}
					return nil
				})
			}
			if err != nil {
				// The list comes from memory: it fails when the gateway stops, only.
				ctrl.LoggerFrom(ctx).Error(err, "Could not list the placements after a change", "object", changed.GetName())
			}
		}
		return requests
	})
}
