// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

const (
	// departureGrace is how long a member may need to remove a placement before that is reported.
	departureGrace = time.Minute
	// maxDepartures limits the members that the condition names.
	maxDepartures = 5
)

// departures are the members that still have a placement although they lost it.
type departures struct {
	members []string
	// reasons has a sentence for each of the first members: why it still has the placement.
	reasons []string
	// again is the time until the next check; 0 if no member is left.
	again time.Duration
}

// departuresOf finds the members that lost a placement a while ago and still have it.
func (r *Reconciler) departuresOf(ctx context.Context, bindings []placementv1beta1.BindingObject) (departures, error) {
	var found departures
	bindings = slices.DeleteFunc(slices.Clone(bindings), func(b placementv1beta1.BindingObject) bool { return b.GetDeletionTimestamp() == nil })
	slices.SortFunc(bindings, func(a, b placementv1beta1.BindingObject) int {
		return strings.Compare(a.GetSpec().TargetCluster, b.GetSpec().TargetCluster)
	})
	for _, b := range bindings {
		if r.Clock.Since(b.GetDeletionTimestamp().Time) < departureGrace {
			found.again = departureGrace
			continue
		}
		member, name := &clusterv1beta1.MemberCluster{}, b.GetSpec().TargetCluster
		exists, err := reconcileutil.GetIfExists(ctx, r.Client, types.NamespacedName{Name: name}, member, "reading member %q", name)
		if err != nil {
			return departures{}, err
		}
		if !exists || member.DeletionTimestamp != nil {
			continue // It leaves with everything that it has.
		}
		found.again = departureGrace
		if found.members = append(found.members, name); len(found.members) > maxDepartures {
			continue
		}
		reason, err := r.departing(ctx, b, member)
		if err != nil {
			return departures{}, err
		}
		found.reasons = append(found.reasons, reason)
	}
	return found, nil
}

// departing says why a member still has a placement that it lost.
func (r *Reconciler) departing(ctx context.Context, b placementv1beta1.BindingObject, member *clusterv1beta1.MemberCluster) (string, error) {
	if placementv1beta1.Paused(member) {
		return fmt.Sprintf("%q is paused: take annotation %s off it", member.Name, placementv1beta1.PausedAnnotation), nil
	}
	if since, silent := member.SilentSince(); silent {
		return fmt.Sprintf("%q has had no heartbeat since %s, and removes it when it reconnects", member.Name, since.UTC().Format(time.RFC3339)), nil
	}
	var works placementv1beta1.WorkList
	if err := r.Client.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member.Name)),
		client.MatchingLabels{placementv1beta1.ParentBindingLabel: b.GetName()}, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the works of binding %q: %w", b.GetName(), err)
	}
	for i := range works.Items {
		work := &works.Items[i]
		if c := meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionRemoved); c != nil && c.Message != "" &&
			work.Labels[placementv1beta1.ParentPlacementNamespaceLabel] == b.GetNamespace() {
			return fmt.Sprintf("%q: %s", member.Name, c.Message), nil
		}
	}
	return fmt.Sprintf("%q has not removed it yet", member.Name), nil
}

// report sets the condition about the members of a placement, or removes it.
func (d *departures) report(conditions *[]metav1.Condition, generation int64) {
	if len(d.members) == 0 {
		meta.RemoveStatusCondition(conditions, placementv1beta1.ConditionRemovalPending)
		return
	}
	reasons := slices.Clone(d.reasons)
	if more := len(d.members) - len(reasons); more > 0 {
		reasons = append(reasons, fmt.Sprintf("%d more members", more))
	}
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: placementv1beta1.ConditionRemovalPending, Status: metav1.ConditionTrue, ObservedGeneration: generation,
		Reason:  placementv1beta1.ReasonMembersNotCleared,
		Message: fmt.Sprintf("%d members still have the placement, which they lost: %s", len(d.members), strings.Join(reasons, "; ")),
	})
}

// reportDeleted reports the members that still have a deleted placement.
func (r *Reconciler) reportDeleted(ctx context.Context, placement placementv1beta1.PlacementObject) (ctrl.Result, error) {
	bindings, err := objects.Bindings(ctx, r.Client, client.ObjectKeyFromObject(placement))
	if err != nil {
		return ctrl.Result{}, err
	}
	found, err := r.departuresOf(ctx, bindings)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = reconcileutil.PatchStatus(ctx, r.Client, placement, func() {
		found.report(&placement.GetStatus().Conditions, placement.GetGeneration())
	}, "writing the status of placement %q", klog.KObj(placement))
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: objects.RetryDelay}, nil
	}
	return ctrl.Result{RequeueAfter: found.again}, client.IgnoreNotFound(err)
}
