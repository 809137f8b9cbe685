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

// Tenancy limits placements to members. ResourcePlacements belong to the tenants of their namespace.
// ClusterResourcePlacements belong to the fleet administrator, and are not limited.
type Tenancy interface {
	// Within are the names of the members that placements of a namespace can choose from.
	Within(ctx context.Context, namespace string) (sets.Set[string], error)
}

// confine limits a policy to the members that its namespace can choose from, and returns a message
// about the limit; empty if there is none.
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

// bindRemedy is the remedy for a member that is forbidden for a namespace.
func bindRemedy(namespace string) string {
	return fmt.Sprintf(`to place on others, bind a set that has them ("clusteradm clusterset bind SET --namespace %s")`, namespace)
}

// explainOutside adds the reason to members of a policy that are forbidden for its namespace.
func explainOutside(decision *framework.Decision, namespace string) {
	for i := range decision.Unselected {
		if choice := &decision.Unselected[i]; choice.Result == framework.Outside {
			choice.Reason = fmt.Sprintf("placement on member %[2]q is forbidden for namespace %[1]q: %[3]s", namespace, choice.Cluster, bindRemedy(namespace))
		}
	}
}

// watchTenancy queues placements when the members that their namespaces can choose from change.
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
