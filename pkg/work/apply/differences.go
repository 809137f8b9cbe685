// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/apply/compare"
)

// differences are the fields in which an object is not as its manifest wants it.
type differences struct {
	fields []placementv1beta1.PatchDetail
	// degraded is set when all fields were compared although only those of the
	// manifest were asked for, because the member does not accept the manifest.
	degraded bool
}

// compare finds the differences of the manifest and the object. Partially means:
// what would change if the manifest were applied, which the member's API server
// answers best. The object is expected to be the latest.
func (e *engine) compare(ctx context.Context, t task, it item, live *unstructured.Unstructured) (differences, error) {
	if t.strategy.ComparisonOption == placementv1beta1.FullComparison {
		return differences{fields: compare.Objects(it.object, live)}, nil
	}
	return e.rehearse(ctx, it, live)
}

// rehearse asks the member's API server what would change if the manifest were
// applied with force.
func (e *engine) rehearse(ctx context.Context, it item, live *unstructured.Unstructured) (differences, error) {
	wanted := it.object.DeepCopy()
	wanted.SetResourceVersion(live.GetResourceVersion())
	rehearsed, err := e.at(it).Apply(ctx, it.id.Name, wanted,
		metav1.ApplyOptions{FieldManager: FieldManager, Force: true, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) {
		return differences{fields: compare.Objects(it.object, live), degraded: true}, nil
	}
	if err != nil {
		return differences{}, err
	}
	return differences{fields: compare.Objects(rehearsed, live)}, nil
}

// reportDiff says how an object differs, and writes nothing. It is not done if the
// object changed meanwhile.
func (e *engine) reportDiff(ctx context.Context, t task, it item, live *unstructured.Unstructured) (outcome, bool) {
	if live == nil {
		return outcome{id: it.id, settled: true, diff: differences{fields: compare.Missing()}}, true
	}
	found, err := e.compare(ctx, t, it, live)
	if err != nil {
		return failed(it, live, placementv1beta1.ReasonFailedToReportDiff, err), !overtaken(err, live)
	}
	out := seen(it, live, t.owner)
	out.settled, out.diff = true, found
	t.memory.settle(it, live.GetResourceVersion(), out, nil, e.clock.Now())
	return out, true
}

// stand finds what stands against writing an object that differs: a drift that is
// not to be overwritten, or an object that is taken over only as it is. The
// outcome is nil if nothing does. It is not done if the object changed meanwhile.
func (e *engine) stand(ctx context.Context, t task, it item, live *unstructured.Unstructured) (*outcome, bool) {
	out := seen(it, live, t.owner)
	drifting := t.strategy.WhenToApply == placementv1beta1.ApplyIfNotDrifted &&
		live.GetAnnotations()[placementv1beta1.ManifestHashAnnotation] == it.hash
	takingOver := t.strategy.WhenToTakeOver == placementv1beta1.TakeOverIfNoDiff &&
		!standingOf(live.GetOwnerReferences(), t.owner).ours
	if !drifting && !takingOver {
		return nil, true
	}
	found, err := e.compare(ctx, t, it, live)
	if err != nil {
		reason := placementv1beta1.ReasonFailedToRunDriftDetection
		if takingOver {
			reason = placementv1beta1.ReasonFailedToTakeOver
		}
		failure := failed(it, live, reason, err)
		failure.holds = out.holds
		return &failure, !overtaken(err, live)
	}
	if len(found.fields) == 0 {
		return nil, true
	}
	out.settled = true
	if takingOver {
		out.diff = found
		out.refused = &refusal{placementv1beta1.ReasonFailedToTakeOver, fmt.Sprintf(
			"The object was on the member before and differs%s (%s), and whenToTakeOver is IfNoDiff: make the two the same, or choose another whenToTakeOver",
			inDegradedMode(found), firstFields(found))}
	} else {
		out.drift = found
		out.refused = &refusal{driftReason(found), fmt.Sprintf(
			"The object was changed on the member%s (%s), and whenToApply is IfNotDrifted: undo the change, bring it to the hub, or choose Always",
			inDegradedMode(found), firstFields(found))}
	}
	t.memory.settle(it, live.GetResourceVersion(), out, nil, e.clock.Now())
	return &out, true
}

func driftReason(found differences) string {
	if found.degraded {
		return placementv1beta1.ReasonFoundDriftsInDegradedMode
	}
	return placementv1beta1.ReasonFoundDrifts
}

func inDegradedMode(found differences) string {
	if found.degraded {
		return ", all fields compared since the member does not accept the manifest"
	}
	return ""
}

// firstFields names some of the fields for a message.
func firstFields(found differences) string {
	first := found.fields[0].Path
	if more := len(found.fields) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}

// seen is the outcome of an object that was looked at and not written.
func seen(it item, live *unstructured.Unstructured, owner metav1.OwnerReference) outcome {
	return outcome{
		id:         it.id,
		generation: live.GetGeneration(),
		uid:        live.GetUID(),
		holds:      standingOf(live.GetOwnerReferences(), owner).ours,
	}
}
