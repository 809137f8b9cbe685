// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// recheckDeletion is the interval between checks of a deletion if the watch reports nothing.
const recheckDeletion = 30 * time.Second

// finalize removes the objects of a deleted Work from the member and then removes the finalizer. Without
// a cause for the deletion it only removes the finalizer: vanished retains the objects.
func (r *Reconciler) finalize(ctx context.Context, work *placementv1beta1.Work) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
		return ctrl.Result{}, nil
	}
	m, err := r.records.membership(ctx, r.hubReader)
	if err != nil {
		return ctrl.Result{}, err
	}
	if m.id != "" && hasCause(work) {
		left, err := r.end(ctx, work, m)
		if err != nil {
			return ctrl.Result{}, err
		}
		if left != nil {
			err := r.reportRemaining(ctx, work, left)
			return ctrl.Result{RequeueAfter: nextRemoval(left)}, err
		}
	}
	r.forget(work.Name)
	return ctrl.Result{}, r.removeFinalizer(ctx, work)
}

// end removes the objects of a deleted Work. It returns the remaining ones, or nil. The user who
// deleted the Work does not know of its retained objects, so these stay, with the AppliedWork.
func (r *Reconciler) end(ctx context.Context, work *placementv1beta1.Work, m membership) (*engine.Removal, error) {
	record, err := r.records.find(ctx, work.Name)
	if err != nil {
		return nil, err
	}
	d := departure{work: work, record: record, membership: m, reported: work.Status.ManifestConditions, policy: metav1.DeletePropagationForeground,
		retainsData: retainsData(work)}
	if work.Annotations[placementv1beta1.DeletePolicyAnnotation] == placementv1beta1.DeletePolicyAbandon {
		d.policy = metav1.DeletePropagationOrphan
	}
	if record == nil || record.DeletionTimestamp != nil || !r.records.isOurs(record, m) {
		return r.depart(ctx, d)
	}
	s, err := r.compareState(ctx, work, m)(record)
	if err != nil {
		return nil, err
	}
	retained := beyond(ledger{r.records, record}.Entries(), work)
	if !s.retained.Is() || len(retained) == 0 {
		return r.depart(ctx, d)
	}
	if err := r.records.renew(ctx, record, m, s); err != nil {
		return nil, err
	}
	return r.departExcept(ctx, d, retained)
}

// departure describes the removal of one Work's objects.
type departure struct {
	// work is the Work. If it no longer exists, only the name is set.
	work metav1.Object
	// record is the AppliedWork; nil if there is none.
	record     *placementv1beta1.AppliedWork
	membership membership
	// reported are the manifests in the Work's status, if the Work still exists. Each applied
	// object is in the ledger or in reported.
	reported []placementv1beta1.ManifestCondition
	// policy is Foreground to delete the objects with their dependents, or Orphan to leave them on
	// the member.
	policy metav1.DeletionPropagation
	// retainsData is set if objects that hold data stay on the member.
	retainsData bool
}

// depart removes or releases the objects of a Work, and its AppliedWork. It returns the remaining
// objects, or nil. The AppliedWork is deleted last: the member's garbage collector would also
// delete the objects, but not those of kinds that it has not discovered yet. The garbage collector
// deletes objects for which the agent lacks a right, but must not get objects that stay or that
// have to be deleted in order.
func (r *Reconciler) depart(ctx context.Context, d departure) (*engine.Removal, error) {
	record := d.record
	if record != nil && !r.records.isOurs(record, d.membership) {
		return nil, nil
	}
	removed, err := r.engine.Remove(ctx, r.removalOf(d), d.policy)
	r.recordRetained(ctx, d.work, removed.Retained())
	if err != nil {
		return nil, err
	}
	if record == nil && removed.IsGone() {
		return nil, nil
	}
	if d.policy != metav1.DeletePropagationOrphan && !removed.MayEndRecord() {
		return removed, nil
	}
	if record != nil && record.DeletionTimestamp == nil {
		policy := d.policy
		finished := policy == metav1.DeletePropagationForeground && removed.IsOver()
		if finished {
			policy = metav1.DeletePropagationBackground // all objects are gone
		}
		err := r.records.member.Delete(ctx, record, client.PropagationPolicy(policy), client.Preconditions{UID: ptr.To(record.UID)})
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting AppliedWork %q on the member: %w", record.Name, err)
		}
		if finished && len(record.Finalizers) == 0 {
			return nil, nil
		}
	}
	return removed, nil // the watch reports the deletion of the AppliedWork
}

// removalOf returns the engine's Work for the removal.
func (r *Reconciler) removalOf(d departure) engine.Work {
	w := engine.Work{
		Name:     d.work.GetName(),
		Record:   ownerOf(&placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: r.options.recordName(d.work.GetName())}}),
		Owner:    owner{records: r.records, work: d.work},
		Reported: referred(d.reported),
		Ending:   r.options.Clock.Now(),

		UnmarkedBefore:   unmarkedBefore(d.record),
		DeletesTakenOver: r.options.DeletesTakenOver,

		Origin:      r.options.originOf(d.work),
		RetainsData: d.retainsData,
	}
	if since := d.work.GetDeletionTimestamp(); since != nil {
		w.Ending = since.Time
	}
	if d.record != nil {
		w.Record, w.Ledger = ownerOf(d.record), ledger{r.records, d.record}
	}
	return w
}

// nextRemoval returns when to check an unfinished removal.
func nextRemoval(left *engine.Removal) time.Duration {
	if left.Waits() {
		return engine.WaitPause
	}
	return recheckDeletion
}

// reportRemaining reports in the Work's status what blocks its deletion.
func (r *Reconciler) reportRemaining(ctx context.Context, work *placementv1beta1.Work, left *engine.Removal) error {
	text := left.Describe()
	if text == "" {
		return nil
	}
	status := *work.Status.DeepCopy()
	conditionsOf(&status.Conditions, work.Generation, metav1.NewTime(r.options.Clock.Now())).removed([]string{text})
	return r.writeStatus(ctx, work, status)
}

// vanished handles a Work that disappeared from the hub without its finalizer or without a cause: its
// objects are retained until an administrator releases them. The hub itself is asked, not only the cache. Only
// objects of the present membership count: objects that stayed when the member left the fleet also
// stay when it rejoins, until a Work of the same name adopts them.
func (r *Reconciler) vanished(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	r.forget(key.Name)
	if r.engine.Observed(r.records.object(key.Name)).Absent() {
		r.setRetained(key.Name, retention.Mark{}, 0)
		return ctrl.Result{}, nil // usually the regular end of a deleted Work
	}
	record, err := r.records.find(ctx, key.Name)
	if record == nil || err != nil {
		return ctrl.Result{}, err
	}
	err = r.hubReader.Get(ctx, key, &placementv1beta1.Work{})
	if err == nil {
		return ctrl.Result{}, nil // the cache lags and will enqueue the Work
	}
	if !reconcileutil.IsGone(err) {
		return ctrl.Result{}, fmt.Errorf("asking the hub whether Work %q still exists: %w", key.Name, err)
	}
	m, err := r.records.membership(ctx, r.hubReader)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !m.isOfPresent(record) || !r.records.isOurs(record, m) {
		r.setRetained(key.Name, retention.Mark{}, 0)
		return ctrl.Result{}, nil
	}
	if record.DeletionTimestamp == nil && !markOf(record).IsReleased(m.released) {
		return r.retainVanished(ctx, record, m)
	}
	r.setRetained(key.Name, retention.Mark{}, 0)
	log.FromContext(ctx).Info("Removing released objects of a Work that no longer exists on the hub", "Work", key.Name)
	_, err = r.depart(ctx, departure{work: &metav1.ObjectMeta{Name: key.Name}, record: record, membership: m, policy: metav1.DeletePropagationForeground,
		retainsData: !markOf(record).IsReleased(m.released)})
	return ctrl.Result{RequeueAfter: recheckDeletion}, err
}

func (r *Reconciler) removeFinalizer(ctx context.Context, work *placementv1beta1.Work) error {
	err := reconcileutil.RemoveFinalizer(ctx, r.hub, work, placementv1beta1.WorkCleanupFinalizer, "removing the finalizer of Work %q", work.Name)
	if err != nil {
		return err
	}
	// The cache still returns the Work for a moment; a second removal would be wasted.
	r.throttle.wrote(work)
	return nil
}

func (r *Reconciler) ensureFinalizer(ctx context.Context, work *placementv1beta1.Work) error {
	before := work.DeepCopy()
	if !controllerutil.AddFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
		return nil
	}
	if err := r.hub.Patch(ctx, work, reconcileutil.PatchFrom(before)); err != nil {
		return fmt.Errorf("adding the finalizer to Work %q: %w", work.Name, err)
	}
	r.throttle.wrote(work)
	return nil
}
