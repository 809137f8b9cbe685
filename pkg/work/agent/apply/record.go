// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// MembershipAnnotation is set on an AppliedWork to the membership under which its Work was applied
// last. The agent writes it.
const MembershipAnnotation = "fleetgate.io/membership"

// marksObjects is the value of TakenOverAnnotation on an AppliedWork.
const marksObjects = "marked"

// unmarkedBefore returns the time until which taken-over objects were not marked. If an older
// version of the agent created the AppliedWork, objects older than the AppliedWork may have been
// taken over.
func unmarkedBefore(record *placementv1beta1.AppliedWork) time.Time {
	if record == nil || record.Annotations[placementv1beta1.TakenOverAnnotation] == marksObjects {
		return time.Time{}
	}
	return record.CreationTimestamp.Time
}

// records reads and writes the AppliedWorks on the member.
type records struct {
	options Options
	hub     client.Reader
	member  client.Client // not cached
	// kept caches AppliedWorks by Work.
	kept *engine.RecordCache[*placementv1beta1.AppliedWork]
}

// find gets the AppliedWork of a Work; nil if there is none.
func (r *records) find(ctx context.Context, work string) (*placementv1beta1.AppliedWork, error) {
	return r.get(ctx, r.options.recordName(work))
}

func (r *records) get(ctx context.Context, name string) (*placementv1beta1.AppliedWork, error) {
	record := &placementv1beta1.AppliedWork{}
	if found, err := reconcileutil.GetIfExists(ctx, r.member, client.ObjectKey{Name: name}, record, "getting AppliedWork %q on the member", name); !found {
		return nil, err
	}
	return record, nil
}

// ensure gets or creates the AppliedWork of a Work, and updates its membership. If see is not nil,
// it also records the state of the Work.
func (r *records) ensure(ctx context.Context, work string, m membership, compareState readState) (*placementv1beta1.AppliedWork, error) {
	record, err := r.current(ctx, work)
	if err != nil {
		return nil, err
	}
	s := state{}
	if compareState != nil && (record == nil || r.isOurs(record, m)) {
		if s, err = compareState(record); err != nil {
			return nil, err
		}
	}
	if record == nil {
		if record, err = r.create(ctx, work, m, s); err != nil {
			return nil, err
		}
	}
	return record, r.renew(ctx, record, m, s)
}

// create creates the AppliedWork of a Work, or gets it if another client just created it.
func (r *records) create(ctx context.Context, work string, m membership, s state) (*placementv1beta1.AppliedWork, error) {
	record := &placementv1beta1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: r.options.recordName(work)},
		Spec:       placementv1beta1.AppliedWorkSpec{WorkName: work, WorkNamespace: r.options.HubNamespace},
	}
	metav1.SetMetaDataAnnotation(&record.ObjectMeta, placementv1beta1.TakenOverAnnotation, marksObjects)
	m.mark(record)
	s.mark(record)
	err := r.member.Create(ctx, record, client.FieldOwner(FieldManager))
	if apierrors.IsAlreadyExists(err) {
		if there, findErr := r.find(ctx, work); there != nil || findErr != nil {
			return there, findErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("creating AppliedWork %q on the member: %w", record.Name, err)
	}
	r.kept.Keep(work, record)
	return record, nil
}

// current is find without a request, if the watch confirms that the cached record is unchanged or
// that none exists. A caller that then creates the record gets an AlreadyExists error if the watch
// was behind.
func (r *records) current(ctx context.Context, work string) (*placementv1beta1.AppliedWork, error) {
	record, found, absent := r.kept.Current(work, r.object(work))
	if found || absent {
		return record, nil
	}
	record, err := r.find(ctx, work)
	if record != nil {
		r.kept.Keep(work, record)
	}
	return record, err
}

func (r *records) object(work string) memberwatch.Object {
	return memberwatch.Object{Resource: appliedWorks(), Name: r.options.recordName(work)}
}

// renew moves a record of an earlier membership to the present one and records the state of its
// Work.
func (r *records) renew(ctx context.Context, record *placementv1beta1.AppliedWork, m membership, s state) error {
	if !r.isOurs(record, m) || record.DeletionTimestamp != nil || m.isMarkedOn(record) && s.isMarkedOn(record) {
		return nil
	}
	return r.annotate(ctx, record, func() {
		m.mark(record)
		s.mark(record)
	})
}

// annotate writes the annotations that mark changes.
func (r *records) annotate(ctx context.Context, record *placementv1beta1.AppliedWork, mark func()) error {
	before := record.DeepCopy()
	mark()
	if err := r.member.Patch(ctx, record, reconcileutil.PatchFrom(before), client.FieldOwner(FieldManager)); err != nil {
		return fmt.Errorf("renewing AppliedWork %q on the member: %w", record.Name, err)
	}
	r.kept.Keep(record.Spec.WorkName, record)
	return nil
}

func stateOn(record *placementv1beta1.AppliedWork) state {
	return state{work: observedOn(record), epoch: record.Annotations[placementv1beta1.EpochAnnotation], retained: markOf(record)}
}

// observedOn returns the value of ObservedWorkAnnotation. If the previous key has another value, an
// agent of the previous version wrote last, and that value counts.
func observedOn(record *placementv1beta1.AppliedWork) string {
	if observed, ok := record.Annotations[deprecatedObservedWorkAnnotation]; ok {
		return observed
	}
	return record.Annotations[ObservedWorkAnnotation]
}

func (s state) mark(record *placementv1beta1.AppliedWork) {
	if s.work == "" {
		return
	}
	for key, value := range map[string]string{
		ObservedWorkAnnotation: s.work, deprecatedObservedWorkAnnotation: s.work,
		placementv1beta1.EpochAnnotation: s.epoch, retention.Annotation: s.retained.Text(),
	} {
		if value == "" {
			delete(record.Annotations, key)
			continue
		}
		metav1.SetMetaDataAnnotation(&record.ObjectMeta, key, value)
	}
}

func (s state) isMarkedOn(record *placementv1beta1.AppliedWork) bool {
	return s.work == "" || s == stateOn(record) && s.work == record.Annotations[ObservedWorkAnnotation]
}
