// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// recheckDeletion is the interval between checks of a deletion if the watch reports nothing.
const recheckDeletion = 30 * time.Second

// finalize removes the objects of a deleted ManifestWork from the cluster and then removes the
// finalizer.
func (r *Reconciler) finalize(ctx context.Context, work *workv1.ManifestWork) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(work, workv1.ManifestWorkFinalizer) {
		return reconcile.Result{}, nil
	}
	record, err := r.records.find(ctx, r.records.nameOf(work.Name))
	if err != nil {
		return reconcile.Result{}, err
	}
	if record != nil {
		waits, err := r.end(ctx, record, work)
		if err != nil {
			return reconcile.Result{}, err
		}
		if waits != "" {
			return reconcile.Result{RequeueAfter: recheckDeletion}, r.reportDeleting(ctx, work, waits)
		}
	}
	r.forget(work.Name)
	return reconcile.Result{}, r.removeFinalizer(ctx, work)
}

// end removes the objects of a deleted ManifestWork, except retained ones, which the user who
// deleted it does not know of. It returns what blocks the removal, as clear does.
func (r *Reconciler) end(ctx context.Context, record *workv1.AppliedManifestWork, work *workv1.ManifestWork) (string, error) {
	if record.DeletionTimestamp != nil || r.options.Epochs == nil {
		return r.clear(ctx, record, r.removalOf(work))
	}
	ledger, err := r.records.ledgerOf(record)
	if err != nil {
		return "", err
	}
	items, err := r.engine.Plan(work.Name, rawOf(work))
	if err != nil {
		return "", err
	}
	retained := engine.Beyond(ledger.Entries(), items)
	mark, err := r.markOf(ctx, record, retained)
	if err != nil {
		return "", err
	}
	if !mark.Is() || len(retained) == 0 {
		return r.clear(ctx, record, r.removalOf(work))
	}
	if err := r.records.annotate(ctx, record, func() error { setMark(record, mark); return nil }); err != nil {
		return "", err
	}
	removed, err := r.engine.RemoveExcept(ctx, engine.Work{
		Name: work.Name, Record: ownerOf(record), Owner: owner{r: r, work: work}, Ledger: ledger}, retained, metav1.DeletePropagationBackground)
	if err != nil {
		return "", err
	}
	return removed.Describe(), nil
}

// removalOf returns the engine's Work for the removal of a ManifestWork. clear adds the record.
func (r *Reconciler) removalOf(work *workv1.ManifestWork) engine.Work {
	w := engine.Work{Name: work.Name, Owner: owner{r: r, work: work}, Reported: referred(work)}
	if work.DeletionTimestamp != nil {
		w.Ending = work.DeletionTimestamp.Time
	}
	return w
}

// clear deletes an AppliedManifestWork and its objects: first the objects, then the record. It
// returns what blocks that, for people, or "" if it is done. The watch reports progress.
func (r *Reconciler) clear(ctx context.Context, record *workv1.AppliedManifestWork, w engine.Work) (string, error) {
	if record.DeletionTimestamp == nil {
		options := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: ptr.To(record.UID)}}
		if err := r.records.member.Delete(ctx, record, options...); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting AppliedManifestWork %q on the cluster: %w", record.Name, err)
		}
		return r.clearNow(ctx, record.Name, w)
	}
	ledger, err := r.records.ledgerOf(record)
	if err != nil {
		return "", err
	}
	before := ledger.Entries()
	w.Record, w.Ledger = ownerOf(record), ledger
	removed, err := r.engine.Remove(ctx, w, metav1.DeletePropagationBackground)
	if err != nil {
		return "", err
	}
	if !removed.IsOver() {
		return removed.Describe(), ledger.Write(ctx, removed.Left(before))
	}
	if err := r.releaseRecord(ctx, record); err != nil {
		return "", err
	}
	if len(record.Finalizers) > 0 {
		return fmt.Sprintf("AppliedManifestWork %s waits for finalizers %q", record.Name, record.Finalizers), nil
	}
	return "", nil
}

// clearNow continues with a record that was just deleted.
func (r *Reconciler) clearNow(ctx context.Context, name string, w engine.Work) (string, error) {
	record, err := r.records.find(ctx, name)
	if record == nil || err != nil {
		return "", err
	}
	if record.DeletionTimestamp == nil {
		return fmt.Sprintf("AppliedManifestWork %s was re-created", name), nil
	}
	return r.clear(ctx, record, w)
}

// releaseRecord removes our finalizer from a record.
func (r *Reconciler) releaseRecord(ctx context.Context, record *workv1.AppliedManifestWork) error {
	before := record.DeepCopy()
	if !controllerutil.RemoveFinalizer(record, workv1.AppliedManifestWorkFinalizer) {
		return nil
	}
	if err := r.records.member.Patch(ctx, record, reconcileutil.PatchFrom(before), client.FieldOwner(workv1.DefaultFieldManager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("removing the finalizer of AppliedManifestWork %q on the cluster: %w", record.Name, err)
	}
	r.records.kept.Forget(record.Name)
	return nil
}

// reportDeleting reports in the ManifestWork's status that it is being deleted, and what blocks that.
func (r *Reconciler) reportDeleting(ctx context.Context, work *workv1.ManifestWork, waits string) error {
	status := *work.Status.DeepCopy()
	conditionsOf(&status.Conditions, work.Generation, metav1.NewTime(r.options.Clock.Now())).deleting(waits)
	return r.writeStatus(ctx, work, status)
}

// removeFinalizer removes our finalizer from a ManifestWork.
func (r *Reconciler) removeFinalizer(ctx context.Context, work *workv1.ManifestWork) error {
	err := reconcileutil.RemoveFinalizer(ctx, r.hub, work, workv1.ManifestWorkFinalizer, "removing the finalizer of ManifestWork %q", work.Name)
	if err != nil {
		return err
	}
	r.progress.wrote(work, r.options.Clock.Now()) // the cache still has it for a moment
	return nil
}
