// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Step is the next step of an initialized run. It is idempotent.
type Step struct {
	// Bind are bindings whose rollout starts, with their desired spec.
	Bind []Binding
	// Delete are bindings to delete.
	Delete []placementv1beta1.BindingObject
	// Ask are approval requests to create, Accept those to accept.
	Ask    []Request
	Accept []placementv1beta1.ApprovalRequestObject
	// Status is the run's status, to be written after the rest.
	Status *placementv1beta1.UpdateRunStatus
	// Again is the delay after which to decide again without a change; 0 means never.
	Again time.Duration
	// Refused is the reason why the run fails, or "".
	Refused string
}

// Binding is a binding with its desired spec.
type Binding struct {
	Object placementv1beta1.BindingObject
	Spec   placementv1beta1.ResourceBindingSpec
}

// start writes the desired spec, and that a run has started its rollout: under strategy External only
// runs do. It also adds the dispatcher's finalizer, which saves that controller a write. The write has to
// depend on the resourceVersion, because it anticipates the generation.
func (b Binding) start() {
	generation := b.Object.GetGeneration()
	if !equality.Semantic.DeepEqual(*b.Object.GetSpec(), b.Spec) {
		generation++
	}
	*b.Object.GetSpec() = b.Spec
	reconcileutil.SetAnnotation(b.Object, placementv1beta1.RolloutStartedAnnotation, strconv.FormatInt(generation, 10))
	controllerutil.AddFinalizer(b.Object, placementv1beta1.WorkCleanupFinalizer)
}

// Next returns the next step of an initialized, unfinished run. A refusal with reason Waits means that
// nothing can be decided for now.
func Next(o *Observed) (Step, *refusal.Refusal) {
	p := &advance{Observed: o, conditionWriter: newConditionWriter(o.Run, o.Now), step: Step{Status: o.Run.GetStatus().DeepCopy()}}
	observe(p.step.Status, p.generation)
	found, no := check(o)
	if no == nil && placementv1beta1.Paused(o.Placement) {
		no = waits("placement %q is paused", o.Placement.GetName())
	}
	if waiting(no) {
		return Step{}, no
	}
	if no != nil {
		p.fail(nil, no.Message)
		//lint:ignore nilerr The run fails, which the step says.
		return p.step, nil
	}
	p.found = found
	if o.Run.GetSpec().State == placementv1beta1.UpdateRunStop {
		p.stop()
	} else {
		p.run()
	}
	return p.step, nil
}

// advance is a step in construction.
type advance struct {
	*Observed
	conditionWriter
	found *placementState
	step  Step
}

// run handles the stages up to the first unfinished one.
func (p *advance) run() {
	status := p.step.Status
	for i := range status.StagesStatus {
		if over := p.stage(&status.StagesStatus[i], &status.StagedUpdateStrategySnapshot.Stages[i]); !over {
			return
		}
	}
	if p.deleteStage(status.DeletionStageStatus) {
		p.end(&status.Conditions, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunSucceeded, "All stages are done")
		return
	}
	p.setProgressing(status.DeletionStageStatus)
}

// stop waits for members that are being updated, and starts no others.
func (p *advance) stop() {
	status := p.step.Status
	stage, finished := p.current()
	if finished {
		p.end(&status.Conditions, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunSucceeded, "All stages are done")
		return
	}
	var f flight
	if stage == status.DeletionStageStatus {
		f = p.leave(stage)
	} else {
		f = p.follow(stage, 0)
	}
	switch {
	case f.refused != "":
		p.fail(stage, f.refused)
	case f.under > 0:
		p.progress(&stage.Conditions, metav1.ConditionUnknown, placementv1beta1.ReasonStageUpdatingStopping, "Waiting for the members that are being updated")
		if !p.stuck(stage, f) {
			p.progress(&status.Conditions, metav1.ConditionUnknown, placementv1beta1.ReasonUpdateRunStopping, "Waiting for the members that are being updated")
		}
	default:
		p.progress(&stage.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingStopped, "No member is being updated; set the run's spec.state to Run to continue")
		p.progress(&status.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStopped, "No member is being updated; set spec.state to Run to continue")
	}
}

// current is the first unfinished stage.
func (p *advance) current() (stage *placementv1beta1.StageUpdatingStatus, finished bool) {
	status := p.step.Status
	for i := range status.StagesStatus {
		if !p.over(&status.StagesStatus[i]) {
			return &status.StagesStatus[i], false
		}
	}
	return status.DeletionStageStatus, p.over(status.DeletionStageStatus)
}

func (p *advance) over(stage *placementv1beta1.StageUpdatingStatus) bool {
	return hasStatus(stage.Conditions, placementv1beta1.ConditionUpdateRunSucceeded, metav1.ConditionTrue, p.generation)
}

// fail ends the run, and the stage if there is one.
func (p *advance) fail(stage *placementv1beta1.StageUpdatingStatus, why string) {
	if stage != nil {
		p.stageEnded(stage, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingFailed, why)
	}
	p.end(&p.step.Status.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunFailed, why)
	p.step.Refused = why
}

func (p *advance) setProgressing(stage *placementv1beta1.StageUpdatingStatus) {
	p.progress(&p.step.Status.Conditions, metav1.ConditionTrue, placementv1beta1.ReasonUpdateRunProgressing,
		fmt.Sprintf("Stage %s is in progress", stage.StageName))
}

// waiting reports that the run waits for tasks of a stage.
func (p *advance) waiting(stage *placementv1beta1.StageUpdatingStatus, when, message string) {
	p.progress(&stage.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingWaiting, message)
	p.progress(&p.step.Status.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunWaiting,
		fmt.Sprintf("Waiting for the tasks %s stage %s", when, stage.StageName))
}

// again requests another decision after a delay; the shortest delay counts.
func (p *advance) again(after time.Duration) {
	if after > 0 && (p.step.Again == 0 || after < p.step.Again) {
		p.step.Again = after
	}
}

// Over reports whether a run has ended, with or without success.
func Over(run placementv1beta1.UpdateRunObject) bool {
	c := meta.FindStatusCondition(run.GetStatus().Conditions, placementv1beta1.ConditionUpdateRunSucceeded)
	return c != nil && c.Status != metav1.ConditionUnknown
}
