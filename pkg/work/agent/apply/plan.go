// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
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

// items returns the items of the Work's manifests.
func (r *Reconciler) items(work *placementv1beta1.Work, mode engine.Mode) ([]engine.Item, error) {
	raw := make([][]byte, 0, len(work.Spec.Workload.Manifests))
	for _, m := range work.Spec.Workload.Manifests {
		raw = append(raw, m.Raw)
	}
	items, err := r.engine.Plan(work.Name, raw)
	items = engine.WithMode(items, mode)
	if work.Spec.ApplyStrategy != nil {
		for place := range items {
			items[place].Mode.Ignore = ignored(work.Spec.ApplyStrategy.IgnoreFields, items[place].Ref)
		}
	}
	return items, err
}

// ignored are the fields of a manifest that a strategy leaves to the member.
func ignored(rules []placementv1beta1.IgnoreFieldsRule, ref manifest.Ref) []engine.IgnoredFields {
	var fields []engine.IgnoredFields
	for place := range rules {
		if rule := &rules[place]; rule.Matches(ref.Group, ref.Kind, ref.Namespace, ref.Name) {
			fields = append(fields, engine.IgnoredFields{
				Pointers: rule.JSONPointers, UntilChanged: rule.Condition == placementv1beta1.IgnoreOnSpokeChange,
			})
		}
	}
	return fields
}

// jobOf returns the engine's Work.
func (r *Reconciler) jobOf(work *placementv1beta1.Work, record *placementv1beta1.AppliedWork, strategy placementv1beta1.ApplyStrategy) engine.Work {
	return engine.Work{
		Name:           work.Name,
		Record:         ownerOf(record),
		Owner:          owner{r.records, work, strategy},
		Origin:         r.options.originOf(work),
		Under:          under(strategy, ownerOf(record), mirrors(work.Spec.ReportBackStrategy)),
		Ledger:         ledger{r.records, record},
		Reported:       referred(work.Status.ManifestConditions),
		RetainsRemoved: markOf(record).Is(),

		UnmarkedBefore:   unmarkedBefore(record),
		DeletesTakenOver: r.options.DeletesTakenOver,
	}
}

func referred(manifests []placementv1beta1.ManifestCondition) []manifest.Ref {
	refs := make([]manifest.Ref, 0, len(manifests))
	for _, m := range manifests {
		refs = append(refs, manifest.Ref(m.Identifier))
	}
	return refs
}

// modeOf converts a strategy with defaults to a Mode.
func modeOf(strategy placementv1beta1.ApplyStrategy, back *placementv1beta1.ReportBackStrategy) engine.Mode {
	method := map[placementv1beta1.ApplyStrategyType]engine.Method{
		placementv1beta1.ClientSideApply: engine.Merge,
		placementv1beta1.ServerSideApply: engine.ServerSide,
		placementv1beta1.ReportDiff:      engine.Compare,
	}
	return engine.Mode{
		Method:        method[strategy.Type],
		Force:         strategy.ServerSideApplyConfig != nil && strategy.ServerSideApplyConfig.ForceConflicts,
		Whole:         strategy.ComparisonOption == placementv1beta1.FullComparison,
		KeepDrifts:    strategy.WhenToApply == placementv1beta1.ApplyIfNotDrifted,
		TakeOverEqual: strategy.WhenToTakeOver == placementv1beta1.TakeOverIfNoDiff,
		OwnTogether:   strategy.AllowCoOwnership,
		Mirror:        mirrors(back),
	}
}

func mirrors(back *placementv1beta1.ReportBackStrategy) bool {
	return back != nil && back.Type == placementv1beta1.ReportBackMirror
}

// under identifies everything that results depend on besides manifest and object.
func under(strategy placementv1beta1.ApplyStrategy, owner metav1.OwnerReference, mirror bool) string {
	text, err := json.Marshal(strategy)
	if err != nil {
		return string(owner.UID)
	}
	return fmt.Sprint(owner.UID, mirror, string(text))
}
