// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// Reasons of refusals that only ManifestWorks have.
const (
	// notServed means that this agent does not support a feature.
	notServed = "NotServed"
	// ignoreFields means that ignoreFields is invalid.
	ignoreFields = "IgnoreFields"
)

// planned is a ManifestWork that was read and is ready to be applied.
type planned struct {
	work   *workv1.ManifestWork
	record *workv1.AppliedManifestWork
	items  []engine.Item
	job    engine.Work
	// mark is the mark of retained objects, if there are any.
	mark retention.Mark
	// withheld are refusals, by index, of manifests whose objects are only read.
	withheld map[int]*refusal.Refusal
	// cannot is the start of messages about missing rights, if the executor writes the objects. If
	// empty, the agent writes them.
	cannot string
	// refused is why the whole ManifestWork is refused; nil if it is not.
	refused *refusal.Refusal
}

// examined is the information about an object for the status.
type examined struct {
	// hasRules is set if there are feedback rules. values are their results and failure joins their
	// errors.
	hasRules bool
	values   []workv1.FeedbackValue
	failure  error
	// rules are the conditions from condition rules.
	rules []metav1.Condition
}

// plan reads the manifests of a ManifestWork and ensures its AppliedManifestWork. Without a plan it
// returns when to retry.
func (r *Reconciler) plan(ctx context.Context, work *workv1.ManifestWork) (*planned, reconcile.Result, error) {
	record, unrecorded, err := r.recordFor(ctx, work)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	p := &planned{work: work, refused: unrecorded}
	if err := r.arrange(ctx, p); err != nil {
		return nil, reconcile.Result{}, err
	}
	if p.refused != nil {
		//lint:ignore nilerr The status reports the refusal.
		return p, reconcile.Result{}, nil
	}
	if record.DeletionTimestamp != nil {
		// Another client deleted the record, and with it the objects. It is re-created when it is
		// gone.
		_, err := r.clear(ctx, record, r.removalOf(work))
		return nil, reconcile.Result{RequeueAfter: recheckDeletion}, err
	}
	ledger, err := r.records.ledgerOf(record)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	as, cannot, err := r.executors.writer(work.Spec.Executor)
	if err != nil {
		return nil, reconcile.Result{}, err
	}
	p.record, p.cannot = record, cannot
	if err := r.updateEpoch(ctx, p, ledger.Entries()); err != nil {
		return nil, reconcile.Result{}, err
	}
	p.job = engine.Work{
		Name:           work.Name,
		Record:         ownerOf(record),
		Owner:          owner{r: r, work: work},
		Under:          under(work, string(record.UID)),
		Ledger:         ledger,
		Reported:       referred(work),
		As:             as,
		RetainsRemoved: p.mark.Is(),
	}
	return p, reconcile.Result{}, nil
}

// recordFor returns the AppliedManifestWork of a ManifestWork, or why it has none.
func (r *Reconciler) recordFor(ctx context.Context, work *workv1.ManifestWork) (*workv1.AppliedManifestWork, *refusal.Refusal, error) {
	if over := len(r.records.nameOf(work.Name)) - validation.DNS1123SubdomainMaxLength; over > 0 {
		return nil, &refusal.Refusal{Reason: engine.NotRecorded, Message: fmt.Sprintf(
			"the name of the ManifestWork has %d characters, and its AppliedManifestWork, which is named after it, can have at most %d of them: re-create it with a shorter name",
			len(work.Name), len(work.Name)-over)}, nil
	}
	record, err := r.records.ensure(ctx, work)
	if apierrors.IsForbidden(err) {
		return nil, r.engine.Unrecorded(err, workv1.GroupVersion.WithKind(recordKind).GroupKind()), nil
	}
	return record, nil, err
}

// arrange creates the items of the ManifestWork's manifests and sets their modes.
func (r *Reconciler) arrange(ctx context.Context, p *planned) error {
	raw := rawOf(p.work)
	var err error
	if p.items, err = r.engine.Plan(p.work.Name, raw); err != nil {
		return err
	}
	p.withheld = map[int]*refusal.Refusal{}
	for place := range p.items {
		it := &p.items[place]
		config := configOf(&p.work.Spec, it.Ref)
		mode, refused, err := r.modeFor(ctx, p.work, config, it.Ref, raw[place])
		if err != nil {
			return err
		}
		if refused == nil && it.NamespaceDropped && isOfReplicaSet(p.work) {
			refused = beyondNamespace(it.Ref)
		}
		if it.Refused == nil && refused != nil {
			p.withheld[place] = refused
			mode = engine.Mode{Method: engine.ReadOnly}
		}
		mode.Examine = r.examine(config)
		it.Mode = mode
	}
	return nil
}

// isOfReplicaSet reports whether a ManifestWorkReplicaSet delivers the ManifestWork. The hub creates
// it for an author, whose permissions it has checked.
func isOfReplicaSet(work *workv1.ManifestWork) bool {
	_, delivered := work.Labels[workv1alpha1.ReplicaSetLabel]
	return delivered
}

// beyondNamespace refuses a manifest whose author was checked in its namespace. The hub removes the
// namespace if it checked the author for the whole cluster.
func beyondNamespace(ref manifest.Ref) *refusal.Refusal {
	return &refusal.Refusal{Reason: engine.NotAcceptable, Message: fmt.Sprintf(
		"%s is cluster-scoped on this cluster, and not on the hub, which authorized its author in one namespace: serve the kind in the same scope, or remove metadata.namespace from the manifest",
		ref.Kind)}
}

// rawOf returns the manifests of a ManifestWork as JSON.
func rawOf(work *workv1.ManifestWork) [][]byte {
	raw := make([][]byte, 0, len(work.Spec.Workload.Manifests))
	for _, m := range work.Spec.Workload.Manifests {
		raw = append(raw, m.Raw)
	}
	return raw
}

// modeFor returns the Mode of a manifest, or why it is not applied.
func (r *Reconciler) modeFor(ctx context.Context, work *workv1.ManifestWork, config workv1.ManifestConfigOption, ref manifest.Ref, raw []byte) (engine.Mode, *refusal.Refusal, error) {
	strategy := strategyOf(config)
	mode, known := modeOf(strategy)
	mode.Disown = stays(work.Spec.DeleteOption, ref)
	switch {
	case isComplete(work, ref):
		return engine.Mode{Method: engine.ReadOnly}, nil, nil // Complete manifests are no longer written
	case !known:
		return mode, &refusal.Refusal{Reason: notServed,
			Message: fmt.Sprintf("This agent does not know updateStrategy %q: use another, or a newer agent", strategy.Type)}, nil
	case ref.Resource == "":
		return mode, nil, nil // the plan has refused the manifest
	}
	if refused, err := r.executors.refuse(ctx, work.Spec.Executor, raw, ref, !mode.Disown); refused != nil || err != nil {
		return mode, refused, err
	}
	if fields := strategy.ServerSideApply.IgnoreFields; mode.Method == engine.ServerSide && len(fields) > 0 {
		leave, err := leaving(ctx, raw, fields)
		if err != nil {
			return mode, &refusal.Refusal{Reason: ignoreFields, Message: engine.Shorten(err.Error())}, nil
		}
		if leave != nil {
			leave.Lean.SetNamespace(ref.Namespace)
		}
		mode.Leave = leave
	}
	return mode, nil, nil
}

// examine returns the function that evaluates feedback and condition rules on an object.
func (r *Reconciler) examine(config workv1.ManifestConfigOption) func(*unstructured.Unstructured) any {
	return func(object *unstructured.Unstructured) any {
		values, err := feedbackOf(object, config.FeedbackRules, r.options.RawFeedback)
		return &examined{hasRules: len(config.FeedbackRules) > 0, values: values, failure: err, rules: r.ruler.evaluate(object, config.ConditionRules)}
	}
}

// isComplete reports whether the status has condition Complete for a manifest.
func isComplete(work *workv1.ManifestWork, ref manifest.Ref) bool {
	return apimeta.IsStatusConditionTrue(reported(work.Status.ResourceStatus.Manifests, ref).Conditions, workv1.ConditionComplete)
}

// referred returns the objects in the ManifestWork's status.
func referred(work *workv1.ManifestWork) []manifest.Ref {
	refs := make([]manifest.Ref, 0, len(work.Status.ResourceStatus.Manifests))
	for _, m := range work.Status.ResourceStatus.Manifests {
		refs = append(refs, refOf(m.ResourceMeta))
	}
	return refs
}

// under identifies everything that results depend on besides manifest and object.
func under(work *workv1.ManifestWork, owner string) string {
	text, err := json.Marshal(struct {
		Configs  []workv1.ManifestConfigOption
		Delete   *workv1.DeleteOption
		Executor *workv1.ManifestWorkExecutor
	}{work.Spec.ManifestConfigs, work.Spec.DeleteOption, work.Spec.Executor})
	if err != nil {
		return owner
	}
	return owner + string(text)
}
