// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// A ManifestWork can disappear from the hub without the agent seeing its deletion: a user removed
// its finalizer, the hub was restored from an older backup, or another hub is behind the URL. Its
// objects stay for a grace period, within which the ManifestWork can reappear, and are removed
// then. Only an explicit NotFound of the hub counts: while the hub does not answer, the grace
// period does not start. If the hub is known to be restored, the objects are retained instead
// (retention.go).

// vanished handles a ManifestWork that no longer exists on the hub.
func (r *Reconciler) vanished(ctx context.Context, key client.ObjectKey) (reconcile.Result, error) {
	r.forget(key.Name)
	record, err := r.records.current(ctx, r.records.nameOf(key.Name))
	if record == nil || err != nil {
		return reconcile.Result{}, err
	}
	if record.DeletionTimestamp != nil {
		return r.finish(ctx, record, key.Name)
	}
	err = r.hubReader.Get(ctx, key, &workv1.ManifestWork{})
	if err == nil {
		return reconcile.Result{}, nil // the cache lags and will enqueue the ManifestWork
	}
	if !reconcileutil.IsGone(err) {
		return reconcile.Result{}, fmt.Errorf("asking the hub whether ManifestWork %q still exists: %w", key.Name, err)
	}
	if retained, err := r.retainVanished(ctx, record, key.Name); retained || err != nil {
		return reconcile.Result{RequeueAfter: retention.Recheck}, err
	}
	return r.evict(ctx, record, key.Name)
}

// reconcileForeignRecord handles a record that this agent created for a hub with another URL.
func (r *Reconciler) reconcileForeignRecord(ctx context.Context, name string) (reconcile.Result, error) {
	record, err := r.records.current(ctx, name)
	if record == nil || err != nil || record.Spec.AgentID != r.options.AgentID {
		return reconcile.Result{}, err
	}
	if record.DeletionTimestamp != nil {
		return r.finish(ctx, record, foreign+name)
	}
	return r.evict(ctx, record, foreign+name)
}

// evict removes a record with its objects once the grace period has passed.
func (r *Reconciler) evict(ctx context.Context, record *workv1.AppliedManifestWork, name string) (reconcile.Result, error) {
	if record.Spec.AgentID != r.options.AgentID {
		return reconcile.Result{}, nil
	}
	if r.options.EvictionGrace >= NeverEvict {
		return reconcile.Result{}, r.records.stopEviction(ctx, record)
	}
	now := r.options.Clock.Now()
	if record.Status.EvictionStartTime == nil {
		start := metav1.NewTime(now)
		record.Status.EvictionStartTime = &start
		return reconcile.Result{RequeueAfter: r.options.EvictionGrace}, r.records.writeStatus(ctx, record)
	}
	if left := record.Status.EvictionStartTime.Add(r.options.EvictionGrace).Sub(now); left > 0 {
		return reconcile.Result{RequeueAfter: min(left+time.Second, r.options.EvictionGrace)}, nil
	}
	log.FromContext(ctx).Info("Removing the objects of a ManifestWork that no longer exists on the hub",
		"ManifestWork", record.Spec.ManifestWorkName, "AppliedManifestWork", record.Name)
	return r.finish(ctx, record, name)
}

// finish removes a record with its objects.
func (r *Reconciler) finish(ctx context.Context, record *workv1.AppliedManifestWork, name string) (reconcile.Result, error) {
	waits, err := r.clear(ctx, record, engine.Work{Name: name, Owner: engine.DefaultOwner{}})
	if err != nil {
		return reconcile.Result{}, err
	}
	if waits == "" {
		r.engine.Forget(name)
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: recheckDeletion}, nil
}
