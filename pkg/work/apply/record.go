// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
)

// MembershipAnnotation is on an AppliedWork and says under which membership in
// the fleet its Work was applied last. The agent writes it.
const MembershipAnnotation = "fleetgate.io/membership"

// findRecord gets the AppliedWork of a Work, nil if there is none.
func (r *Reconciler) findRecord(ctx context.Context, work string) (*placementv1beta1.AppliedWork, error) {
	return r.getRecord(ctx, r.options.recordName(work))
}

func (r *Reconciler) getRecord(ctx context.Context, name string) (*placementv1beta1.AppliedWork, error) {
	record := &placementv1beta1.AppliedWork{}
	err := r.member.Get(ctx, client.ObjectKey{Name: name}, record)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting AppliedWork %q on the member: %w", name, err)
	}
	return record, nil
}

// ensureRecord gets or makes the AppliedWork of a Work, under the present
// membership.
func (r *Reconciler) ensureRecord(ctx context.Context, work string, m membership) (*placementv1beta1.AppliedWork, error) {
	record, err := r.currentRecord(ctx, work)
	if err == nil && record == nil {
		record, err = r.makeRecord(ctx, work, m)
	}
	if err != nil {
		return nil, err
	}
	return record, r.renewRecord(ctx, record, m)
}

// makeRecord makes the AppliedWork of a Work, or gets it if somebody else just did.
func (r *Reconciler) makeRecord(ctx context.Context, work string, m membership) (*placementv1beta1.AppliedWork, error) {
	record := &placementv1beta1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: r.options.recordName(work)},
		Spec:       placementv1beta1.AppliedWorkSpec{WorkName: work, WorkNamespace: r.options.HubNamespace},
	}
	m.mark(record)
	err := r.member.Create(ctx, record, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		if there, findErr := r.findRecord(ctx, work); there != nil || findErr != nil {
			return there, findErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("creating AppliedWork %q on the member: %w", record.Name, err)
	}
	r.keepRecord(work, record)
	return record, nil
}

// currentRecord is findRecord without asking the member, if the watch says that
// the record is as it was left, or that there is none. The latter is for who is about
// to make one, and is refused if there is one after all.
func (r *Reconciler) currentRecord(ctx context.Context, work string) (*placementv1beta1.AppliedWork, error) {
	saw := r.watcher.Saw(r.recordObject(work))
	if record := r.memory.of(work).knownRecord(saw, r.options.Clock.Now()); record != nil {
		return record, nil
	}
	if saw.Absent() {
		return nil, nil
	}
	record, err := r.findRecord(ctx, work)
	if record != nil {
		r.keepRecord(work, record)
	}
	return record, err
}

func (r *Reconciler) keepRecord(work string, record *placementv1beta1.AppliedWork) {
	r.memory.of(work).keepRecord(record, r.options.Clock.Now())
}

func (r *Reconciler) recordObject(work string) memberwatch.Object {
	return memberwatch.Object{Resource: memberwatch.AppliedWorks(), Name: r.options.recordName(work)}
}

// renewRecord takes a record of an earlier membership into the present one.
func (r *Reconciler) renewRecord(ctx context.Context, record *placementv1beta1.AppliedWork, m membership) error {
	if !r.isOurs(record, m) || record.DeletionTimestamp != nil || m.isMarkedOn(record) {
		return nil
	}
	before := record.DeepCopy()
	m.mark(record)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.member.Patch(ctx, record, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("renewing AppliedWork %q on the member: %w", record.Name, err)
	}
	r.keepRecord(record.Spec.WorkName, record)
	return nil
}

// writeLedger writes the ledger if it differs.
func (r *Reconciler) writeLedger(ctx context.Context, record *placementv1beta1.AppliedWork, ledger []entry) error {
	if slices.Equal(record.Status.AppliedResources, ledger) {
		return nil
	}
	record.Status.AppliedResources = ledger
	if err := r.member.Status().Update(ctx, record, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("recording the objects of AppliedWork %q on the member: %w", record.Name, err)
	}
	r.keepRecord(record.Spec.WorkName, record)
	return nil
}
