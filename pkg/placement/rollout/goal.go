// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/placement/override"
)

// goal is what a placement's bindings should be bound to.
type goal struct {
	// snapshot is the latest resource snapshot.
	snapshot string
	// overrides are those of each member that has any.
	overrides map[string]override.Set
}

// goal finds what the bindings should be bound to.
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

// version is the desired version of a member.
func (g goal) version(member string) string {
	cluster, namespaced := g.overrides[member].Names()
	return version(g.snapshot, cluster, namespaced)
}

// candidates translates bindings for Plan.
func (g goal) candidates(pauses pauses) func(placementv1beta1.BindingObject) Candidate {
	return func(b placementv1beta1.BindingObject) Candidate {
		return candidateOf(b, g.version(b.GetSpec().TargetCluster), pauses.has(b))
	}
}

func (g goal) write(spec *placementv1beta1.ResourceBindingSpec) {
	spec.ResourceSnapshotName = g.snapshot
	spec.ClusterResourceOverrideSnapshots, spec.ResourceOverrideSnapshots = g.overrides[spec.TargetCluster].Names()
}

// everyPlacement queues all placements. An override applies to every placement that selects its
// resources, and only the placement's snapshot shows which ones.
func (r *Reconciler) everyPlacement() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return append(enqueue.All(ctx, r.Client, &placementv1beta1.ClusterResourcePlacementList{}),
			enqueue.All(ctx, r.Client, &placementv1beta1.ResourcePlacementList{})...)
	})
}
