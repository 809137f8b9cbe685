// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
)

// A bundle is what one placement, or one user, delivers to a member: one or more Works.
type bundle struct{ namespace, placement, work string }

func bundleOf(work *placementv1beta1.Work) bundle {
	if placement := work.Labels[placementv1beta1.ParentPlacementLabel]; placement != "" {
		return bundle{namespace: work.Labels[placementv1beta1.ParentPlacementNamespaceLabel], placement: placement}
	}
	return bundle{work: work.Name}
}

// isDelivered reports whether the member has the current content of a Work, and it is available. A Work
// that only reports differences is delivered when it has reported.
func isDelivered(work *placementv1beta1.Work) bool {
	current := func(conditionType string) bool {
		c := meta.FindStatusCondition(work.Status.Conditions, conditionType)
		return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation
	}
	if strategy := work.Spec.ApplyStrategy; strategy != nil && strategy.Type == placementv1beta1.ReportDiff {
		return current(placementv1beta1.ConditionDiffReported)
	}
	return current(placementv1beta1.ConditionApplied) && current(placementv1beta1.ConditionAvailable)
}

// displayBundles is how many bundles of a member are ready, such as 1/2.
func displayBundles(works []placementv1beta1.Work) string {
	ready := map[bundle]bool{}
	for i := range works {
		work := &works[i]
		if !work.DeletionTimestamp.IsZero() {
			continue
		}
		of := bundleOf(work)
		others, counted := ready[of]
		ready[of] = isDelivered(work) && (others || !counted)
	}
	n := 0
	for _, is := range ready {
		if is {
			n++
		}
	}
	return fmt.Sprintf("%d/%d", n, len(ready))
}

// readyBundles counts the bundles of a member, from a cache if the client has one.
func (r *ClusterReconciler) readyBundles(ctx context.Context, mc *clusterv1beta1.MemberCluster) (string, error) {
	if !r.Bundles || mc == nil {
		return "", nil
	}
	var works placementv1beta1.WorkList // Only counted, so not copied.
	if err := r.Client.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(mc.Name)), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the Works of member %q: %w", mc.Name, err)
	}
	return displayBundles(works.Items), nil
}

// deliveryChanged passes what changes the number of bundles, or of those that are ready.
func deliveryChanged() predicate.Predicate {
	return enqueue.Updates(func(before, after *placementv1beta1.Work) bool {
		return isDelivered(before) != isDelivered(after) || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			bundleOf(before) != bundleOf(after)
	})
}

func (r *ClusterReconciler) clusterOfWork(ctx context.Context, work client.Object) []reconcile.Request {
	member, ok := clusterv1beta1.MemberOfNamespace(work.GetNamespace())
	if !ok {
		return nil
	}
	var mc clusterv1beta1.MemberCluster
	if err := r.Client.Get(ctx, client.ObjectKey{Name: member}, &mc); err != nil {
		return nil
	}
	return clusterOfMember(ctx, &mc)
}
