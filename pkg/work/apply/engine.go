// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/availability"
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
	// compatible tells whether the work of another AppliedWork shares objects.
	compatible func(work string) bool
	memory     *workMemory
	// seen is the resourceVersion that the watch knows of an object.
	seen func(item) (string, bool)
}

// outcome is what became of one manifest.
type outcome struct {
	id placementv1beta1.WorkResourceIdentifier
	// refused is nil when the manifest is applied.
	refused *refusal
	// verdict is set when the manifest is applied.
	verdict availability.Verdict
	// generation and uid are those of the object on the member, if there is one.
	generation int64
	uid        types.UID
	// holds is set when the object carries, or may carry, our ownership.
	holds bool
	// err is set when nothing could be found out: the member did not answer.
	err error
	// postponed is set when a repair has to wait that long.
	postponed time.Duration
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
	version, seen := t.seen(it)
	if known, ok := t.memory.unchanged(it, version); seen && ok {
		known.id = it.id
		return known
	}
	for range attempts {
		if out, done := e.attempt(ctx, t, it); done {
			return out
		}
	}
	return outcome{id: it.id, holds: true, err: errors.New("the object kept changing while it was written")}
}

// attempt is one look at the object and at most one change of it. It is not
// done if the object changed between the two.
func (e *engine) attempt(ctx context.Context, t task, it item) (outcome, bool) {
	live, err := e.find(ctx, it)
	if err != nil {
		return failed(it, nil, placementv1beta1.ReasonFailedToFindObjInMemberCluster, err), true
	}
	if live != nil {
		if held := e.holdBack(t, it, live); held != nil {
			return *held, true
		}
	}
	written, err := e.write(ctx, t, it, live)
	switch {
	case err == nil:
	case overtaken(err, live):
		return outcome{}, false
	default:
		out := failed(it, live, placementv1beta1.ReasonManifestApplyFailed, err)
		out.holds = out.err != nil || live != nil && standingOf(live.GetOwnerReferences(), t.owner).ours
		return out, true
	}
	out := outcome{id: it.id, holds: true, verdict: availability.Of(written),
		generation: written.GetGeneration(), uid: written.GetUID()}
	repaired := live != nil && live.GetResourceVersion() != written.GetResourceVersion()
	t.memory.settle(it, written.GetResourceVersion(), out, repaired, e.clock.Now())
	return out, true
}

// find gets the object that a manifest is for, nil if there is none.
func (e *engine) find(ctx context.Context, it item) (*unstructured.Unstructured, error) {
	live, err := e.at(it).Get(ctx, it.id.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

// holdBack says why an object that exists is not written, or nil.
func (e *engine) holdBack(t task, it item, live *unstructured.Unstructured) *outcome {
	out := outcome{
		id:         it.id,
		generation: live.GetGeneration(),
		uid:        live.GetUID(),
		holds:      standingOf(live.GetOwnerReferences(), t.owner).ours,
	}
	if out.refused = mayOwn(live, t.owner, t.strategy, t.compatible); out.refused != nil {
		return &out
	}
	if live.GetDeletionTimestamp() != nil {
		out.refused = &refusal{placementv1beta1.ReasonManifestApplyFailed,
			"The object is being deleted on the member; it is made again when it is gone"}
		return &out
	}
	if out.postponed = t.memory.wait(it, e.clock.Now()); out.postponed > 0 {
		return &out
	}
	return nil
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
