// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/availability"
	"fleetgate.io/fleetgate/pkg/work/apply/compare"
	"fleetgate.io/fleetgate/pkg/work/apply/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/apply/merge"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// attempts is how often one manifest is tried in a row while its object changes
// under our hands.
const attempts = 5

// engine brings objects to the state that manifests ask for. It knows owners,
// strategies and manifests, but not from which kind of work they come.
type engine struct {
	member   dynamic.Interface
	merger   merge.Merger
	clock    clock.PassiveClock
	parallel int // manifests of one wave at a time
}

// task is what holds for all manifests of one work.
type task struct {
	owner    metav1.OwnerReference
	strategy placementv1beta1.ApplyStrategy
	// mirror asks for the status of each object.
	mirror bool
	// compatible tells whether the work of another AppliedWork shares objects.
	compatible func(work string) bool
	memory     *workMemory
	// saw is what the watch knows of an object.
	saw func(item) memberwatch.Sighting
}

// outcome is what became of one manifest.
type outcome struct {
	id placementv1beta1.WorkResourceIdentifier
	// refused is nil when the manifest is applied, or compared.
	refused *refusal
	// settled is set when another look brings nothing as long as nothing changes.
	settled bool
	// verdict is set when the manifest is applied.
	verdict availability.Verdict
	// drift is how the object of an applied manifest differs from it, diff how one
	// differs that is not applied.
	drift, diff differences
	// generation and uid are those of the object on the member, if there is one.
	generation int64
	uid        types.UID
	// mirrored is the object with its status and little else, if that was asked for.
	mirrored *unstructured.Unstructured
	// holds is set when the object carries, or may carry, our ownership.
	holds bool
	// err is set when nothing could be found out: the member did not answer.
	err error
	// postponed is set when a repair has to wait that long.
	postponed time.Duration
	// against is set while the object is contested, for at least quietIn.
	against *contest
	quietIn time.Duration
}

// run applies items wave by wave. Outcomes are in the order of the items.
func (e *engine) run(ctx context.Context, t task, items []item) []outcome {
	outcomes := make([]outcome, len(items))
	for place, it := range items {
		outcomes[place] = outcome{id: it.id, refused: it.refused}
	}
	for _, wave := range inWaves(items) {
		var group errgroup.Group
		group.SetLimit(e.parallel)
		for _, place := range wave {
			group.Go(func() error {
				outcomes[place] = e.process(ctx, t, items[place])
				return nil
			})
		}
		_ = group.Wait() // outcomes carry the errors
	}
	return outcomes
}

// process brings one manifest to the member, unless the watch says that the
// object is as it was left.
func (e *engine) process(ctx context.Context, t task, it item) outcome {
	out := e.settleOne(ctx, t, it)
	out.against, out.quietIn = t.memory.contest(it, e.clock.Now())
	return out
}

func (e *engine) settleOne(ctx context.Context, t task, it item) outcome {
	saw := t.saw(it)
	if known, ok := t.memory.unchanged(it, saw, e.clock.Now()); ok {
		known.id = it.id
		return known
	}
	it, err := it.decoded()
	if err != nil {
		return outcome{id: it.id, holds: true, err: err}
	}
	if saw.Absent() && isCreated(t, it) {
		if out, done := e.bring(ctx, t, it, nil); done {
			return out
		}
	}
	for range attempts {
		if out, done := e.attempt(ctx, t, it); done {
			return out
		}
	}
	return outcome{id: it.id, holds: true, err: errors.New("the object kept changing while it was looked at")}
}

// attempt is one look at the object and at most one change of it. It is not done
// if the object changed between the two.
func (e *engine) attempt(ctx context.Context, t task, it item) (outcome, bool) {
	live, err := e.find(ctx, it)
	if err != nil {
		return failed(it, nil, placementv1beta1.ReasonFailedToFindObjInMemberCluster, err), true
	}
	if t.strategy.Type == placementv1beta1.ReportDiff {
		return e.reportDiff(ctx, t, it, live)
	}
	if live != nil {
		if refused := mayWrite(t, live); refused != nil {
			out := seen(it, live, t.owner)
			out.refused = refused
			return out, true
		}
		if out, done := e.stand(ctx, t, it, live); !done || out != nil {
			return ptr.Deref(out, outcome{}), done
		}
	}
	return e.bring(ctx, t, it, live)
}

// bring writes the object, which may be written, unless it has to wait.
func (e *engine) bring(ctx context.Context, t task, it item, live *unstructured.Unstructured) (outcome, bool) {
	if wait := t.memory.wait(it, e.clock.Now()); wait > 0 {
		return e.postpone(ctx, t, it, live, wait), true
	}
	return e.writeOnce(ctx, t, it, live)
}

// isCreated reports whether writing an object that is not there is a creation, which
// the member refuses if it is there after all: who owns it is asked then. A
// server-side apply would change it.
func isCreated(t task, it item) bool {
	return t.strategy.Type == placementv1beta1.ClientSideApply && merges(t, it, nil)
}

// writeOnce writes the object, and says what it was good for.
func (e *engine) writeOnce(ctx context.Context, t task, it item, live *unstructured.Unstructured) (outcome, bool) {
	written, err := e.write(ctx, t, it, live)
	switch {
	case err == nil && written.GetUID() == "":
		return outcome{id: it.id, settled: true, refused: &refusal{placementv1beta1.ReasonManifestApplyFailed,
			"The member answers objects of this kind and keeps none: take it out of the placement"}}, true
	case err == nil:
		return e.applied(t, it, live, written), true
	case overtaken(err, live):
		return outcome{}, false
	}
	out := failed(it, live, placementv1beta1.ReasonManifestApplyFailed, err)
	out.holds = out.err != nil || live != nil && standingOf(live.GetOwnerReferences(), t.owner).ours
	if live == nil || !isImmutable(err) {
		return out, true
	}
	if against := mayRecreate(it, live, t.owner); against != "" {
		out.refused.message = shorten(out.refused.message + ". " + against)
		return out, true
	}
	err = deleteExactly(ctx, e.at(it), live, metav1.DeletePropagationBackground)
	if err == nil || overtaken(err, live) {
		return outcome{}, false // the next attempt makes it again
	}
	out = failed(it, live, placementv1beta1.ReasonManifestApplyFailed, err)
	out.holds = true
	return out, true
}

// applied is the outcome of a write that went well.
func (e *engine) applied(t task, it item, live, written *unstructured.Unstructured) outcome {
	out := seen(it, written, t.owner)
	out.holds, out.verdict = true, availability.Of(written)
	if t.strategy.ComparisonOption == placementv1beta1.FullComparison {
		out.drift = differences{fields: compare.Objects(it.object, written)}
	}
	if t.mirror {
		out.mirrored = mirrored(written)
	}
	var undone *contest
	if live == nil || live.GetResourceVersion() != written.GetResourceVersion() {
		undone = contestOf(live, written)
	}
	t.memory.settle(it, written.GetResourceVersion(), out, undone, e.clock.Now())
	return out
}

// find gets the object that a manifest is for, nil if there is none.
func (e *engine) find(ctx context.Context, it item) (*unstructured.Unstructured, error) {
	live, err := e.at(it).Get(ctx, it.id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// mayWrite says why an object that exists must not be written, or nil.
func mayWrite(t task, live *unstructured.Unstructured) *refusal {
	if refused := mayOwn(live, t.owner, t.strategy, t.compatible); refused != nil {
		return refused
	}
	if live.GetDeletionTimestamp() == nil {
		return nil
	}
	text := "The object is being deleted on the member; it is made again when it is gone"
	if finalizers := live.GetFinalizers(); len(finalizers) > 0 {
		text += fmt.Sprintf(". It waits for finalizers %q", finalizers)
	}
	return &refusal{placementv1beta1.ReasonManifestApplyFailed, shorten(text)}
}

// postpone is the outcome of an object whose next repair has to wait: it may not
// need one.
func (e *engine) postpone(ctx context.Context, t task, it item, live *unstructured.Unstructured, wait time.Duration) outcome {
	if live == nil {
		return outcome{id: it.id, holds: true, postponed: wait}
	}
	if differs, err := e.differs(ctx, t, it, live); err == nil && !differs {
		return e.applied(t, it, live, live)
	}
	out := seen(it, live, t.owner)
	out.postponed = wait
	return out
}

// mirrored is what a report of an object's status holds.
func mirrored(object *unstructured.Unstructured) *unstructured.Unstructured {
	status, found := object.Object["status"]
	if !found {
		return nil
	}
	report := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	report.SetGroupVersionKind(object.GroupVersionKind())
	report.SetName(object.GetName())
	return report
}

func (e *engine) at(it item) dynamic.ResourceInterface {
	if it.namespaced {
		return e.member.Resource(it.resource).Namespace(it.id.Namespace)
	}
	return e.member.Resource(it.resource)
}

// overtaken tells that the object is no longer what the attempt has seen.
func overtaken(err error, live *unstructured.Unstructured) bool {
	if live == nil {
		return apierrors.IsAlreadyExists(err)
	}
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !isFieldConflict(err)
}

// failed is the outcome of an error, which may be an answer or the lack of one.
func failed(it item, live *unstructured.Unstructured, reason string, err error) outcome {
	out := outcome{id: it.id, holds: true, err: err}
	if live != nil {
		out.generation, out.uid = live.GetGeneration(), live.GetUID()
	}
	if isTemporary(err) {
		return out
	}
	kind := manifest.KeyOf(it.id)
	out.err = nil
	out.refused = &refusal{reason, explain(err, groupKind(kind))}
	return out
}
