// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func newRun(namespace string) placementv1beta1.UpdateRunObject {
	if namespace == "" {
		return &placementv1beta1.ClusterStagedUpdateRun{}
	}
	return &placementv1beta1.StagedUpdateRun{}
}

func newRunList(namespace string) client.ObjectList {
	if namespace == "" {
		return &placementv1beta1.ClusterStagedUpdateRunList{}
	}
	return &placementv1beta1.StagedUpdateRunList{}
}

// newStrategy returns an empty update strategy for the namespace's scope, and its spec.
func newStrategy(namespace string) (client.Object, *placementv1beta1.UpdateStrategySpec) {
	if namespace == "" {
		s := &placementv1beta1.ClusterStagedUpdateStrategy{}
		return s, &s.Spec
	}
	s := &placementv1beta1.StagedUpdateStrategy{}
	return s, &s.Spec
}

func newApproval(namespace string) placementv1beta1.ApprovalRequestObject {
	if namespace == "" {
		return &placementv1beta1.ClusterApprovalRequest{}
	}
	return &placementv1beta1.ApprovalRequest{}
}

// Request is an approval request to create.
type Request struct {
	Name, Stage string
	// Task is the value of the label taskType.
	Task string
}

func (q Request) object(run types.NamespacedName) placementv1beta1.ApprovalRequestObject {
	a := newApproval(run.Namespace)
	a.SetNamespace(run.Namespace)
	a.SetName(q.Name)
	a.SetLabels(map[string]string{
		placementv1beta1.TargetUpdateRunLabel:           run.Name,
		placementv1beta1.TargetUpdatingStageLabel:       q.Stage,
		placementv1beta1.TaskTypeLabel:                  q.Task,
		placementv1beta1.IsLatestUpdateRunApprovalLabel: "true",
	})
	*a.GetSpec() = placementv1beta1.ApprovalRequestSpec{ParentStageRollout: run.Name, TargetStage: q.Stage}
	return a
}

// hasStatus reports whether a condition is about the object's current generation and has the status.
func hasStatus(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, generation int64) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == status && c.ObservedGeneration == generation
		}
	}
	return false
}
