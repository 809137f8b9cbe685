// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// Tenancy limits who may place where. ResourcePlacements belong to the tenants of their
// namespace; ClusterResourcePlacements are the fleet administrator's, and not limited.
type Tenancy interface {
	// Within are the names of the members that placements of a namespace may choose from.
	Within(ctx context.Context, namespace string) (sets.Set[string], error)
}

// confine limits a policy to what its namespace may choose from, and says so in words; empty
// if it is not limited.
func (r *Reconciler) confine(ctx context.Context, policy *framework.Policy, fleet *framework.Fleet) (string, error) {
	if r.Tenancy == nil || policy.Namespace == "" {
		return "", nil
	}
	within, err := r.Tenancy.Within(ctx, policy.Namespace)
	if err != nil {
		return "", err
	}
	policy.Within = within
	count := 0
	for i := range fleet.Clusters {
		if within.Has(fleet.Clusters[i].Name) {
			count++
		}
	}
	if count == len(fleet.Clusters) {
		return "", nil
	}
	return fmt.Sprintf("namespace %q may place on %d of %d members, those in ManagedClusterSets that are bound to it: %s",
		policy.Namespace, count, len(fleet.Clusters), bindRemedy(policy.Namespace)), nil
}

// bindRemedy is what to do about a member that a namespace may not place on.
func bindRemedy(namespace string) string {
	return fmt.Sprintf(`to place on others, bind a set that has them ("clusteradm clusterset bind SET --namespace %s")`, namespace)
}

// explainOutside says of members that a policy names why they are out of bounds.
func explainOutside(decision *framework.Decision, namespace string) {
	for i := range decision.Unselected {
		if choice := &decision.Unselected[i]; choice.Outcome == framework.Outside {
			choice.Reason = fmt.Sprintf("namespace %q may not place on member %q: %s", namespace, choice.Cluster, bindRemedy(namespace))
		}
	}
}

// watchTenancy has placements looked at again when what their namespaces may choose from
// changes.
func (r *Reconciler) watchTenancy(b *builder.Builder) *builder.Builder {
	if r.Tenancy == nil {
		return b
	}
	specs := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	return b.
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, binding client.Object) []reconcile.Request {
			return r.tenants(ctx, client.InNamespace(binding.GetNamespace()))
		}), specs).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.allTenants), specs).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.allTenants),
			builder.WithPredicates(predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})))
}

func (r *Reconciler) allTenants(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.tenants(ctx)
}

func (r *Reconciler) tenants(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	return enqueue.All(ctx, r.Client, &placementv1beta1.ResourcePlacementList{}, which...)
}
