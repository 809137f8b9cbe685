// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// conditionWriter writes conditions with one generation and one time.
type conditionWriter struct {
	generation int64
	now        metav1.Time
}

func newConditionWriter(run placementv1beta1.UpdateRunObject, now time.Time) conditionWriter {
	return conditionWriter{generation: run.GetGeneration(), now: metav1.NewTime(now)}
}

func (s conditionWriter) set(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: s.generation, LastTransitionTime: s.now,
	})
}

// progress sets a run's or a stage's condition Progressing.
func (s conditionWriter) progress(conditions *[]metav1.Condition, status metav1.ConditionStatus, reason, message string) {
	s.set(conditions, placementv1beta1.ConditionUpdateRunProgressing, status, reason, message)
}

// end sets the conditions of a finished run or stage.
func (s conditionWriter) end(conditions *[]metav1.Condition, succeeded metav1.ConditionStatus, reason, message string) {
	s.progress(conditions, metav1.ConditionFalse, reason, message)
	s.set(conditions, placementv1beta1.ConditionUpdateRunSucceeded, succeeded, reason, message)
}

func (s conditionWriter) stageStarted(stage *placementv1beta1.StageUpdatingStatus) {
	if stage.StartTime == nil {
		stage.StartTime = s.now.DeepCopy()
	}
	s.progress(&stage.Conditions, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingStarted, "Members of the stage are being updated")
}

func (s conditionWriter) stageEnded(stage *placementv1beta1.StageUpdatingStatus, succeeded metav1.ConditionStatus, reason, message string) {
	if stage.EndTime == nil {
		stage.EndTime = s.now.DeepCopy()
	}
	s.end(&stage.Conditions, succeeded, reason, message)
}

func (s conditionWriter) memberStarted(c *placementv1beta1.ClusterUpdatingStatus) {
	s.set(&c.Conditions, placementv1beta1.ConditionClusterUpdatingStarted, metav1.ConditionTrue,
		placementv1beta1.ReasonClusterUpdatingStarted, "The update of the member has started")
}

func (s conditionWriter) memberSucceeded(c *placementv1beta1.ClusterUpdatingStatus) {
	s.set(&c.Conditions, placementv1beta1.ConditionClusterUpdatingSucceeded, metav1.ConditionTrue,
		placementv1beta1.ReasonClusterUpdatingSucceeded, "The update of the member is done")
}

// observe sets the current generation in all conditions of a run's status: only the wanted state can
// have changed.
func observe(status *placementv1beta1.UpdateRunStatus, generation int64) {
	all := []*[]metav1.Condition{&status.Conditions}
	stage := func(s *placementv1beta1.StageUpdatingStatus) {
		all = append(all, &s.Conditions)
		for i := range s.Clusters {
			all = append(all, &s.Clusters[i].Conditions)
		}
		for _, tasks := range [][]placementv1beta1.StageTaskStatus{s.BeforeStageTaskStatus, s.AfterStageTaskStatus} {
			for i := range tasks {
				all = append(all, &tasks[i].Conditions)
			}
		}
	}
	for i := range status.StagesStatus {
		stage(&status.StagesStatus[i])
	}
	if status.DeletionStageStatus != nil {
		stage(status.DeletionStageStatus)
	}
	for _, conditions := range all {
		for i := range *conditions {
			(*conditions)[i].ObservedGeneration = generation
		}
	}
}
