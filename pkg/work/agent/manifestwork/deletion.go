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
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// recheckDeletion is after what time a deletion is looked at again although the watch said
// nothing.
const recheckDeletion = 30 * time.Second

// finalize removes from the cluster what a deleted ManifestWork brought, and then lets it
// go.
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
			return reconcile.Result{RequeueAfter: recheckDeletion}, r.tellDeleting(ctx, work, waits)
		}
	}
	r.forget(work.Name)
	return reconcile.Result{}, r.letGo(ctx, work)
}

// end removes what a deleted ManifestWork brought, but for what is held: who deletes it does not
// know of that. It says what that waits for, as clear does.
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
	held := engine.Beyond(ledger.Entries(), items)
	mark, err := r.markOf(ctx, record, held)
	if err != nil {
		return "", err
	}
	if !mark.Is() || len(held) == 0 {
		return r.clear(ctx, record, r.removalOf(work))
	}
	if err := r.records.annotate(ctx, record, func() error { setMark(record, mark); return nil }); err != nil {
		return "", err
	}
	removed, err := r.engine.RemoveBut(ctx, engine.Work{
		Name: work.Name, Owner: ownerOf(record), Ledger: ledger, Keep: keeps(work), HeirOf: r.heirsOf(work)}, held, metav1.DeletePropagationBackground)
	if err != nil {
		return "", err
	}
	return removed.Describe(), nil
}

// job is what is to be cleared with a record.
type job struct {
	// name is the engine's for the ManifestWork.
	name string
	// keep is what stays on the cluster. Nil: nothing does.
	keep func(engine.Entry) bool
	// heirOf finds who else wants it. Nil: nobody does.
	heirOf engine.HeirFinder
	// reported is what the ManifestWork's status names, if there still is one.
	reported []manifest.Ref
	// ending is when its deletion was asked for, if it was.
	ending time.Time
}

// removalOf is what is to be cleared with the record of a ManifestWork.
func (r *Reconciler) removalOf(work *workv1.ManifestWork) job {
	j := job{name: work.Name, keep: keeps(work), heirOf: r.heirsOf(work), reported: referred(work)}
	if work.DeletionTimestamp != nil {
		j.ending = work.DeletionTimestamp.Time
	}
	return j
}

// clear deletes an AppliedManifestWork with what it owns: first the objects, then the
// record. It says what that waits for, in words, empty if it is done: the watch tells when
// that is gone.
func (r *Reconciler) clear(ctx context.Context, record *workv1.AppliedManifestWork, j job) (string, error) {
	if record.DeletionTimestamp == nil {
		options := []client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: ptr.To(record.UID)}}
		if err := r.records.member.Delete(ctx, record, options...); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("deleting AppliedManifestWork %q on the cluster: %w", record.Name, err)
		}
		return r.clearNow(ctx, record.Name, j)
	}
	ledger, err := r.records.ledgerOf(record)
	if err != nil {
		return "", err
	}
	before := ledger.Entries()
	removed, err := r.engine.Remove(ctx, engine.Work{
		Name: j.name, Owner: ownerOf(record), Ledger: ledger, Keep: j.keep, HeirOf: j.heirOf, Reported: j.reported, Ending: j.ending}, metav1.DeletePropagationBackground)
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

// clearNow goes on with a record that was just deleted.
func (r *Reconciler) clearNow(ctx context.Context, name string, j job) (string, error) {
	record, err := r.records.find(ctx, name)
	if record == nil || err != nil {
		return "", err
	}
	if record.DeletionTimestamp == nil {
		return fmt.Sprintf("AppliedManifestWork %s was made again", name), nil
	}
	return r.clear(ctx, record, j)
}

// releaseRecord takes our finalizer off a record.
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

// tellDeleting says in the ManifestWork's status that it is being deleted, and what that
// waits for.
func (r *Reconciler) tellDeleting(ctx context.Context, work *workv1.ManifestWork, waits string) error {
	status := *work.Status.DeepCopy()
	conditionsOf(&status.Conditions, work.Generation, metav1.NewTime(r.options.Clock.Now())).deleting(waits)
	return r.writeStatus(ctx, work, status)
}

// letGo takes our finalizer off a ManifestWork.
func (r *Reconciler) letGo(ctx context.Context, work *workv1.ManifestWork) error {
	err := reconcileutil.RemoveFinalizer(ctx, r.hub, work, workv1.ManifestWorkFinalizer, "removing the finalizer of ManifestWork %q", work.Name)
	if err != nil {
		return err
	}
	r.progress.wrote(work, r.options.Clock.Now()) // the cache has it for a moment yet
	return nil
}
