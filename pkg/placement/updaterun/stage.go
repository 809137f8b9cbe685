// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// stuckAfter is how long a member can take before the run reports that it is stuck.
const stuckAfter = 5 * time.Minute

// stage handles one stage, and reports whether it is finished.
func (p *advance) stage(stage *placementv1beta1.StageUpdatingStatus, config *placementv1beta1.StageConfig) bool {
	if p.over(stage) {
		return true
	}
	if len(stage.Clusters) == 0 {
		if stage.StartTime == nil {
			stage.StartTime = p.now.DeepCopy()
		}
		p.stageEnded(stage, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSkippedNoClusters, "The stage has no members")
		return true
	}
	if done, refused := p.tasks(stage, config.BeforeStageTasks, stage.BeforeStageTaskStatus, placementv1beta1.BeforeStageTask); !done {
		if refused != "" {
			p.fail(stage, refused)
			return false
		}
		p.waiting(stage, "before", "Waiting for the tasks before the stage")
		return false
	}
	f := p.follow(stage, concurrency(config, len(stage.Clusters)))
	switch {
	case f.refused != "":
		p.fail(stage, f.refused)
	case f.finished == len(stage.Clusters):
		return p.finish(stage, config)
	default:
		p.stageStarted(stage)
		if !p.stuck(stage, f) {
			p.setProgressing(stage)
		}
	}
	return false
}

// finish waits for the tasks after a stage whose members are all updated.
func (p *advance) finish(stage *placementv1beta1.StageUpdatingStatus, config *placementv1beta1.StageConfig) bool {
	if stage.StartTime == nil {
		stage.StartTime = p.now.DeepCopy()
	}
	// This starts a TimedWait.
	p.progress(&stage.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonStageUpdatingWaiting, "All members are updated, waiting for the tasks after the stage")
	done, refused := p.tasks(stage, config.AfterStageTasks, stage.AfterStageTaskStatus, placementv1beta1.AfterStageTask)
	switch {
	case refused != "":
		p.fail(stage, refused)
	case !done:
		p.waiting(stage, "after", "All members are updated, waiting for the tasks after the stage")
	default:
		p.stageEnded(stage, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, "All members are updated and all tasks are done")
	}
	return done
}

// concurrency is the number of members of a stage that can be updated at a time. Percentages are
// rounded down, to at least one.
func concurrency(config *placementv1beta1.StageConfig, members int) int {
	if config.MaxConcurrency == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(config.MaxConcurrency, members, false)
	if err != nil {
		return 1 // The schema allows only numbers and percentages.
	}
	return max(n, 1)
}

// flight is the progress of a stage's members.
type flight struct {
	under, finished int
	// late are those that take too long.
	late []string
	// refused is the reason why the run cannot continue, or "".
	refused string
}

// follow handles the started members of a stage, and then starts others while fewer than limit are in
// flight.
func (p *advance) follow(stage *placementv1beta1.StageUpdatingStatus, limit int) flight {
	var f flight
	var ahead []*placementv1beta1.ClusterUpdatingStatus
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		switch {
		case hasStatus(c.Conditions, placementv1beta1.ConditionClusterUpdatingSucceeded, metav1.ConditionTrue, p.generation):
			f.finished++
		case hasStatus(c.Conditions, placementv1beta1.ConditionClusterUpdatingStarted, metav1.ConditionTrue, p.generation):
			p.member(stage, c, true, &f)
		default:
			ahead = append(ahead, c)
		}
	}
	for _, c := range ahead {
		if f.under < limit && f.refused == "" && !p.Paused[c.ClusterName] {
			p.member(stage, c, false, &f)
		}
	}
	return f
}

// member handles one member.
func (p *advance) member(stage *placementv1beta1.StageUpdatingStatus, c *placementv1beta1.ClusterUpdatingStatus, begun bool, f *flight) {
	b := p.found.bound[c.ClusterName]
	want := p.target(b, c)
	same := equality.Semantic.DeepEqual(*b.GetSpec(), want)
	if begun && !same {
		f.under++
		f.refused = fmt.Sprintf("binding %q of member %q in stage %q was changed by another client, perhaps another run of the same placement; create another run when that one has ended", b.GetName(), c.ClusterName, stage.StageName)
		p.set(&c.Conditions, placementv1beta1.ConditionClusterUpdatingSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonClusterUpdatingFailed, f.refused)
		return
	}
	p.memberStarted(c)
	if !same || !started(b) {
		f.under++
		p.step.Bind = append(p.step.Bind, Binding{Object: b, Spec: want})
		p.again(stuckAfter)
		return
	}
	if arrived(b) {
		f.finished++
		p.memberSucceeded(c)
		return
	}
	f.under++
	since := meta.FindStatusCondition(c.Conditions, placementv1beta1.ConditionClusterUpdatingStarted).LastTransitionTime
	left := since.Add(stuckAfter).Sub(p.Now)
	p.again(left)
	if left <= 0 {
		f.late = append(f.late, c.ClusterName)
	}
}

// target is the desired spec of a member's binding.
func (p *advance) target(b placementv1beta1.BindingObject, c *placementv1beta1.ClusterUpdatingStatus) placementv1beta1.ResourceBindingSpec {
	want := *b.GetSpec().DeepCopy()
	want.State = placementv1beta1.BindingBound
	want.ResourceSnapshotName = snapshotName(p.Run)
	want.ClusterResourceOverrideSnapshots, want.ResourceOverrideSnapshots = c.ClusterResourceOverrideSnapshots, c.ResourceOverrideSnapshots
	want.ApplyStrategy = p.step.Status.AppliedStrategy
	return want
}

// started reports whether the rollout of the binding's spec has started. The condition alone may be that
// of a previous gateway.
func started(b placementv1beta1.BindingObject) bool {
	return placementv1beta1.StartedByRun(b) ||
		hasStatus(b.GetStatus().Conditions, placementv1beta1.ConditionRolloutStarted, metav1.ConditionTrue, b.GetGeneration())
}

// arrived reports whether the binding's status says that the member has its version, and that it is
// available.
func arrived(b placementv1beta1.BindingObject) bool {
	is := func(kind string) bool {
		return hasStatus(b.GetStatus().Conditions, kind, metav1.ConditionTrue, b.GetGeneration())
	}
	return is(placementv1beta1.ConditionRolloutStarted) && (is(placementv1beta1.ConditionAvailable) || is(placementv1beta1.ConditionDiffReported))
}

// stuck reports members that take too long.
func (p *advance) stuck(stage *placementv1beta1.StageUpdatingStatus, f flight) bool {
	if len(f.late) == 0 {
		return false
	}
	const most = 3
	named := strings.Join(f.late[:min(len(f.late), most)], ", ")
	if len(f.late) > most {
		named += "..."
	}
	p.progress(&p.step.Status.Conditions, metav1.ConditionFalse, placementv1beta1.ReasonUpdateRunStuck,
		fmt.Sprintf("Stage %s has waited for longer than %s for %s; the placement's status has the reason", stage.StageName, stuckAfter, named))
	return true
}

// deleteStage deletes the bindings of unscheduled members, and reports whether they are deleted.
func (p *advance) deleteStage(stage *placementv1beta1.StageUpdatingStatus) bool {
	if p.over(stage) {
		return true
	}
	p.stageStarted(stage)
	for i := range stage.Clusters {
		p.memberStarted(&stage.Clusters[i])
	}
	if f := p.leave(stage); f.under > 0 {
		return false
	}
	p.stageEnded(stage, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, "The resources have been removed from all unscheduled members")
	return true
}

// leave handles the members of the delete stage whose removal has started.
func (p *advance) leave(stage *placementv1beta1.StageUpdatingStatus) flight {
	var f flight
	for i := range stage.Clusters {
		c := &stage.Clusters[i]
		if !hasStatus(c.Conditions, placementv1beta1.ConditionClusterUpdatingStarted, metav1.ConditionTrue, p.generation) {
			continue
		}
		b, stays := p.found.leaving[c.ClusterName]
		if !stays {
			f.finished++
			p.memberSucceeded(c)
			continue
		}
		f.under++
		if b.GetDeletionTimestamp() == nil && !p.Paused[c.ClusterName] {
			p.step.Delete = append(p.step.Delete, b)
		}
	}
	return f
}

// tasks handles the tasks before or after a stage, and reports whether all are done.
func (p *advance) tasks(stage *placementv1beta1.StageUpdatingStatus, tasks []placementv1beta1.StageTask, status []placementv1beta1.StageTaskStatus, kind string) (done bool, refused string) {
	done = true
	for i := range min(len(tasks), len(status)) {
		var ready bool
		if tasks[i].Type == placementv1beta1.StageTaskTimedWait {
			ready = p.waited(stage, &tasks[i], &status[i])
		} else if ready, refused = p.approved(stage, &status[i], kind); refused != "" {
			return false, refused
		}
		done = done && ready
	}
	return done, ""
}

func (p *advance) waited(stage *placementv1beta1.StageUpdatingStatus, task *placementv1beta1.StageTask, status *placementv1beta1.StageTaskStatus) bool {
	since := meta.FindStatusCondition(stage.Conditions, placementv1beta1.ConditionUpdateRunProgressing).LastTransitionTime
	if left := since.Add(task.WaitTime.Duration).Sub(p.Now); left > 0 {
		p.again(left)
		return false
	}
	p.set(&status.Conditions, placementv1beta1.ConditionStageTaskWaitTimeElapsed, metav1.ConditionTrue,
		placementv1beta1.ReasonAfterStageTaskWaitTimeElapsed, "The time has passed")
	return true
}

// approved handles an approval. An accepted approval cannot be revoked.
func (p *advance) approved(stage *placementv1beta1.StageUpdatingStatus, status *placementv1beta1.StageTaskStatus, kind string) (ready bool, refused string) {
	if hasStatus(status.Conditions, placementv1beta1.ConditionStageTaskApprovalRequestApproved, metav1.ConditionTrue, p.generation) {
		return true, ""
	}
	a, requested := p.Approvals[status.ApprovalRequestName]
	if !requested {
		p.step.Ask = append(p.step.Ask, Request{Name: status.ApprovalRequestName, Stage: stage.StageName, Task: kind})
	} else if a.GetSpec().ParentStageRollout != p.Run.GetName() || a.GetSpec().TargetStage != stage.StageName {
		return false, fmt.Sprintf("approval request %q already exists for stage %q of run %q; delete it, then create another run", a.GetName(), a.GetSpec().TargetStage, a.GetSpec().ParentStageRollout)
	}
	p.set(&status.Conditions, placementv1beta1.ConditionStageTaskApprovalRequestCreated, metav1.ConditionTrue,
		placementv1beta1.ReasonStageTaskApprovalRequestCreated, "The approval request has been created")
	if !requested {
		return false, ""
	}
	accepted := hasStatus(a.GetStatus().Conditions, placementv1beta1.ConditionApprovalRequestApprovalAccepted, metav1.ConditionTrue, a.GetGeneration())
	if !accepted {
		if !hasStatus(a.GetStatus().Conditions, placementv1beta1.ConditionApprovalRequestApproved, metav1.ConditionTrue, a.GetGeneration()) {
			return false, ""
		}
		p.step.Accept = append(p.step.Accept, a)
	}
	p.set(&status.Conditions, placementv1beta1.ConditionStageTaskApprovalRequestApproved, metav1.ConditionTrue,
		placementv1beta1.ReasonStageTaskApprovalRequestApproved, "The approval request has been approved")
	return true, ""
}

// approvalNames are the approval requests that a run may still need.
func approvalNames(status *placementv1beta1.UpdateRunStatus) []string {
	var names []string
	for i := range status.StagesStatus {
		s := &status.StagesStatus[i]
		for _, task := range slices.Concat(s.BeforeStageTaskStatus, s.AfterStageTaskStatus) {
			if task.ApprovalRequestName != "" && meta.FindStatusCondition(task.Conditions, placementv1beta1.ConditionStageTaskApprovalRequestApproved) == nil {
				names = append(names, task.ApprovalRequestName)
			}
		}
	}
	return names
}
