// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ttl deletes completed ManifestWorks after spec.deleteOption.ttlSecondsAfterFinished. It
// runs on the hub. The agent then removes their objects as after any deletion. ManifestWorks of a
// ManifestWorkReplicaSet stay, because their controller would re-create them.
package ttl

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// Name is the name of the controller.
const Name = "manifestwork.expiry"

// recheckInterval is the longest interval between checks, because clocks can jump.
const recheckInterval = time.Hour

// Reconciler deletes expired ManifestWorks. It reads no manifests, so that the cache can omit them.
type Reconciler struct {
	Client client.Client
	Clock  clock.PassiveClock
	// Workers is the number of ManifestWorks reconciled in parallel.
	Workers int
}

// SetupWithManager watches completed ManifestWorks with a TTL.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	limited := predicate.NewPredicateFuncs(func(object client.Object) bool {
		work, ok := object.(*workv1.ManifestWork)
		if !ok {
			return false
		}
		_, limited := endOf(work)
		return limited
	})
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&workv1.ManifestWork{}, builder.WithPredicates(limited)).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(r))
}

// Reconcile deletes a ManifestWork, or requeues it for the time when it expires.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	work := &workv1.ManifestWork{}
	if err := r.Client.Get(ctx, req.NamespacedName, work); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	end, limited := endOf(work)
	if !limited {
		return ctrl.Result{}, nil
	}
	if left := end.Sub(r.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: min(left, recheckInterval)}, nil
	}
	if err := r.Client.Delete(ctx, work, client.Preconditions{UID: &work.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting ManifestWork %s, which is done: %w", req, err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted a completed ManifestWork after its ttlSecondsAfterFinished")
	return ctrl.Result{}, nil
}

// maxSeconds keeps the TTL within the range of time.Duration.
const maxSeconds = int64(100 * 365 * 24 * 60 * 60)

// endOf returns when a ManifestWork is to be deleted; false if never or not yet known.
func endOf(work *workv1.ManifestWork) (time.Time, bool) {
	if work.DeletionTimestamp != nil || work.Spec.DeleteOption == nil || work.Spec.DeleteOption.TTLSecondsAfterFinished == nil {
		return time.Time{}, false
	}
	if _, made := work.Labels[workv1alpha1.ReplicaSetLabel]; made {
		return time.Time{}, false
	}
	complete := meta.FindStatusCondition(work.Status.Conditions, workv1.ConditionComplete)
	if complete == nil || complete.Status != metav1.ConditionTrue {
		return time.Time{}, false
	}
	seconds := min(*work.Spec.DeleteOption.TTLSecondsAfterFinished, maxSeconds)
	return complete.LastTransitionTime.Add(time.Duration(seconds) * time.Second), true
}
