// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
	record := &placementv1beta1.AppliedWork{}
	err := r.member.Get(ctx, client.ObjectKey{Name: work}, record)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("getting AppliedWork %q on the member: %w", work, err)
	}
	return record, nil
}

// ensureRecord gets or makes the AppliedWork of a Work, under the present
// membership.
func (r *Reconciler) ensureRecord(ctx context.Context, work string) (*placementv1beta1.AppliedWork, error) {
	membership, err := r.membership(ctx, r.hub)
	if err != nil {
		return nil, err
	}
	record, err := r.currentRecord(ctx, work)
	if err == nil && record == nil {
		record, err = r.makeRecord(ctx, work, membership)
	}
	if err != nil {
		return nil, err
	}
	return record, r.renewRecord(ctx, record, membership)
}

// makeRecord makes the AppliedWork of a Work, or gets it if somebody else just did.
func (r *Reconciler) makeRecord(ctx context.Context, work, membership string) (*placementv1beta1.AppliedWork, error) {
	record := &placementv1beta1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: work, Annotations: map[string]string{MembershipAnnotation: membership}},
		Spec:       placementv1beta1.AppliedWorkSpec{WorkName: work, WorkNamespace: r.options.HubNamespace},
	}
	err := r.member.Create(ctx, record, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		if there, findErr := r.findRecord(ctx, work); there != nil || findErr != nil {
			return there, findErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("creating AppliedWork %q on the member: %w", work, err)
	}
	r.keepRecord(record)
	return record, nil
}

// currentRecord is findRecord without asking the member, if the watch says that
// the record is as it was left, or that there is none. The latter is for who is about
// to make one, and is refused if there is one after all.
func (r *Reconciler) currentRecord(ctx context.Context, work string) (*placementv1beta1.AppliedWork, error) {
	saw := r.watcher.Saw(recordObject(work))
	if record := r.memory.of(work).knownRecord(saw, r.options.Clock.Now()); record != nil {
		return record, nil
	}
	if saw.Absent() {
		return nil, nil
	}
	record, err := r.findRecord(ctx, work)
	if record != nil {
		r.keepRecord(record)
	}
	return record, err
}

func (r *Reconciler) keepRecord(record *placementv1beta1.AppliedWork) {
	r.memory.of(record.Name).keepRecord(record, r.options.Clock.Now())
}

func recordObject(work string) memberwatch.Object {
	return memberwatch.Object{Resource: memberwatch.AppliedWorks(), Name: work}
}

// renewRecord takes a record of an earlier membership into the present one.
func (r *Reconciler) renewRecord(ctx context.Context, record *placementv1beta1.AppliedWork, membership string) error {
	if !r.isOurs(record) || record.DeletionTimestamp != nil || record.Annotations[MembershipAnnotation] == membership {
		return nil
	}
	before := record.DeepCopy()
	if record.Annotations == nil {
		record.Annotations = map[string]string{}
	}
	record.Annotations[MembershipAnnotation] = membership
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.member.Patch(ctx, record, patch, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("renewing AppliedWork %q on the member: %w", record.Name, err)
	}
	r.keepRecord(record)
	return nil
}

// isOurs reports whether the record is of a Work in our namespace: two hubs can
// place a Work of the same name on one member.
func (r *Reconciler) isOurs(record *placementv1beta1.AppliedWork) bool {
	return record.Spec.WorkNamespace == r.options.HubNamespace && record.Spec.WorkName == record.Name
}

// writeLedger writes the ledger if it differs.
func (r *Reconciler) writeLedger(ctx context.Context, record *placementv1beta1.AppliedWork, ledger []entry) error {
	if apiequality.Semantic.DeepEqual(record.Status.AppliedResources, ledger) {
		return nil
	}
	record.Status.AppliedResources = ledger
	if err := r.member.Status().Update(ctx, record, client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("recording the objects of AppliedWork %q on the member: %w", record.Name, err)
	}
	r.keepRecord(record)
	return nil
}
