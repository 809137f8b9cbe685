// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"cmp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// stagesOf divides the members that have a binding into stages, in order. Each member must be in
// exactly one stage.
func stagesOf(run string, strategy *placementv1beta1.UpdateStrategySpec, bound map[string]placementv1beta1.BindingObject, members map[string]labels.Set) ([]placementv1beta1.StageUpdatingStatus, *refusal.Refusal) {
	stages := make([]placementv1beta1.StageUpdatingStatus, 0, len(strategy.Stages))
	stageOf := map[string]string{}
	for i := range strategy.Stages {
		config := &strategy.Stages[i]
		if no := checkTasks(config); no != nil {
			return nil, no
		}
		names, no := membersOf(config, bound, members)
		if no != nil {
			return nil, no
		}
		stage := placementv1beta1.StageUpdatingStatus{StageName: config.Name, Clusters: make([]placementv1beta1.ClusterUpdatingStatus, 0, len(names))}
		for _, name := range names {
			if other, again := stageOf[name]; again {
				return nil, refused("member %q is in stage %q and in stage %q; change their selectors so that they exclude each other", name, other, config.Name)
			}
			stageOf[name] = config.Name
			stage.Clusters = append(stage.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: name})
		}
		stage.BeforeStageTaskStatus = tasksOf(config.BeforeStageTasks, placementv1beta1.BeforeStageApprovalName(run, config.Name))
		stage.AfterStageTaskStatus = tasksOf(config.AfterStageTasks, placementv1beta1.AfterStageApprovalName(run, config.Name))
		stages = append(stages, stage)
	}
	var left []string
	for name := range bound {
		if stageOf[name] == "" {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		return nil, refused("%d members are in no stage: %s; add a stage whose labelSelector chooses them", len(left), listed(left))
	}
	return stages, nil
}

// checkTasks rejects tasks that the schema allows.
func checkTasks(config *placementv1beta1.StageConfig) *refusal.Refusal {
	tasks := config.AfterStageTasks
	if len(tasks) == 2 && tasks[0].Type == tasks[1].Type {
		return refused("stage %q has two tasks of type %s after it; remove one", config.Name, tasks[0].Type)
	}
	for _, task := range tasks {
		if task.Type == placementv1beta1.StageTaskTimedWait && (task.WaitTime == nil || task.WaitTime.Duration <= 0) {
			return refused("the TimedWait after stage %q has no waitTime; set it to, for example, 10m, or remove the task", config.Name)
		}
	}
	return nil
}

// membersOf are the members of a stage, in order.
func membersOf(config *placementv1beta1.StageConfig, bound map[string]placementv1beta1.BindingObject, members map[string]labels.Set) ([]string, *refusal.Refusal) {
	selector, err := metav1.LabelSelectorAsSelector(config.LabelSelector) // A missing selector selects nothing.
	if err != nil {
		return nil, refused("labelSelector of stage %q: %v", config.Name, err)
	}
	var names []string
	rank := map[string]int{}
	for name := range bound {
		has, here := members[name]
		if !here || !selector.Matches(has) {
			continue
		}
		names = append(names, name)
		if config.SortingLabelKey == nil {
			continue
		}
		if rank[name], err = strconv.Atoi(has[*config.SortingLabelKey]); err != nil {
			return nil, refused("member %q has no whole number in label %q, by which stage %q is sorted, but %q", name, *config.SortingLabelKey, config.Name, has[*config.SortingLabelKey])
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(rank[a], rank[b]), cmp.Compare(a, b)) })
	return names, nil
}

func tasksOf(tasks []placementv1beta1.StageTask, approval string) []placementv1beta1.StageTaskStatus {
	var all []placementv1beta1.StageTaskStatus
	for _, task := range tasks {
		s := placementv1beta1.StageTaskStatus{Type: task.Type}
		if task.Type == placementv1beta1.StageTaskApproval {
			s.ApprovalRequestName = approval
		}
		all = append(all, s)
	}
	return all
}
