// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// planned is a Work that was read and is ready to be applied.
type planned struct {
	work   *placementv1beta1.Work
	record *placementv1beta1.AppliedWork
	items  []engine.Item
	// mode is the Mode of all items.
	mode engine.Mode
	job  engine.Work
	// refused is why the whole Work is refused; nil if it is not.
	refused *refusal.Refusal
	// cannot is the start of messages about missing rights, if another account than the agent
	// applies the Work.
	cannot string
}

// plan reads the manifests of a Work and ensures its AppliedWork. Without a plan it returns when to
// retry.
func (r *Reconciler) plan(ctx context.Context, work *placementv1beta1.Work) (*planned, reconcile.Result, error) {
	m, err := r.records.membership(ctx, r.hub)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	record, denied := r.records.ensure(ctx, work.Name, m, r.compareState(ctx, work, m))
	if denied != nil && !apierrors.IsForbidden(denied) {
		return nil, reconcile.Result{}, denied
	}
	if record != nil && record.DeletionTimestamp != nil {
		return nil, reconcile.Result{RequeueAfter: recheckDeletion}, nil // re-created when it is gone
	}
	strategy := work.Spec.ApplyStrategy.WithDefaults()
	p := &planned{work: work, record: record, mode: modeOf(strategy, work.Spec.ReportBackStrategy)}
	if p.items, err = r.items(work, p.mode); err != nil {
		return nil, reconcile.Result{}, err
	}
	switch {
	case denied != nil:
		p.refused = r.engine.Unrecorded(denied, placementv1beta1.GroupVersion.WithKind(appliedWorkKind).GroupKind())
		return p, reconcile.Result{}, nil
	case !r.records.isOurs(record, m):
		p.refused = foreignRecord(record)
		return p, reconcile.Result{}, nil
	}
	if err := r.noteGrowth(ctx, p); err != nil {
		return nil, reconcile.Result{}, err
	}
	var as dynamic.Interface
	if as, p.cannot, err = r.appliers.of(work); err != nil {
		return nil, reconcile.Result{}, err
	}
	p.job = r.jobOf(work, record, strategy)
	p.job.As = as
	return p, reconcile.Result{}, nil
}
