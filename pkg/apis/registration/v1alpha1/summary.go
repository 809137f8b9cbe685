// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GenericCondition is a condition in the format of this group. Unlike metav1.Condition it has an
// update time, and its times are strings.
type GenericCondition struct {
	// type of the condition.
	Type string `json:"type"`

	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// lastUpdateTime is when any field changed, in RFC 3339.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`

	// lastTransitionTime is when status changed, in RFC 3339.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`

	// reason for the status, as one word.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message describes the status and the remedy.
	// +optional
	Message string `json:"message,omitempty"`
}

// WithCondition adds or replaces the condition. An unchanged condition keeps its times. It can
// modify the given list.
func WithCondition(conditions []GenericCondition, wanted GenericCondition, now time.Time) []GenericCondition {
	wanted.LastUpdateTime = now.UTC().Format(time.RFC3339)
	wanted.LastTransitionTime = wanted.LastUpdateTime
	for i, old := range conditions {
		if old.Type != wanted.Type {
			continue
		}
		if old.Status == wanted.Status {
			wanted.LastTransitionTime = old.LastTransitionTime
			if old.Reason == wanted.Reason && old.Message == wanted.Message {
				return conditions
			}
		}
		conditions[i] = wanted
		return conditions
	}
	return append(conditions, wanted)
}

// DeploymentSummary counts deployments by state. fleetgate does not write it.
type DeploymentSummary struct {
	// notReady counts those that are applied but not ready.
	// +optional
	NotReady int `json:"notReady,omitempty"`

	// waitApplied counts those that are not applied yet.
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`

	// errApplied counts those that failed to apply.
	// +optional
	ErrApplied int `json:"errApplied,omitempty"`

	// outOfSync counts those with an older version applied.
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`

	// modified counts those that were changed on the cluster.
	// +optional
	Modified int `json:"modified,omitempty"`

	// ready counts those that are ready.
	// +optional
	Ready int `json:"ready"`

	// pending counts those that wait for their rollout.
	// +optional
	Pending int `json:"pending,omitempty"`

	// desiredReady counts all.
	// +optional
	DesiredReady int `json:"desiredReady"`

	// nonReadyResources are some of those that are not ready.
	// +nullable
	// +optional
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is a deployment that is not ready.
type NonReadyResource struct {
	// name of the deployment.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`

	// bundleState is its state.
	// +nullable
	// +optional
	State string `json:"bundleState,omitempty"`

	// message is the cause.
	// +nullable
	// +optional
	Message string `json:"message,omitempty"`

	// modifiedStatus are its resources that were changed on the cluster.
	// +nullable
	// +optional
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`

	// nonReadyStatus are its resources that are not ready.
	// +nullable
	// +optional
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ModifiedStatus is a resource that was changed on the cluster.
type ModifiedStatus struct {
	// kind of the resource.
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`

	// apiVersion of the resource.
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// namespace of the resource; empty if cluster-scoped.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the resource.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`

	// missing is true if it should exist but does not.
	// +optional
	Missing bool `json:"missing,omitempty"`

	// exist is true if it exists and belongs to another owner.
	// +optional
	Exist bool `json:"exist,omitempty"`

	// delete is true if it exists but should not.
	// +optional
	Delete bool `json:"delete,omitempty"`

	// patch that would undo the change, as JSON.
	// +nullable
	// +optional
	Patch string `json:"patch,omitempty"`
}

// NonReadyStatus is a resource that is not ready.
type NonReadyStatus struct {
	// uid of the resource.
	// +nullable
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// kind of the resource.
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`

	// apiVersion of the resource.
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// namespace of the resource; empty if cluster-scoped.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the resource.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`

	// summary is the state of the resource.
	// +optional
	Summary ResourceState `json:"summary,omitzero"`
}

// ResourceState is the state of a resource.
type ResourceState struct {
	// state is one word.
	// +optional
	State string `json:"state,omitempty"`

	// error is true if waiting will not make it ready.
	// +optional
	Error bool `json:"error,omitempty"`

	// transitioning is true if it is progressing.
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`

	// message has details, one sentence each.
	// +optional
	Message []string `json:"message,omitempty"`
}

// ResourceCounts counts resources by state. fleetgate does not write it.
type ResourceCounts struct {
	// ready counts those that are ready.
	// +optional
	Ready int `json:"ready"`

	// desiredReady counts all.
	// +optional
	DesiredReady int `json:"desiredReady"`

	// waitApplied counts those that are not applied yet.
	// +optional
	WaitApplied int `json:"waitApplied"`

	// modified counts those that were changed on the cluster.
	// +optional
	Modified int `json:"modified"`

	// orphaned counts those that exist but should not.
	// +optional
	Orphaned int `json:"orphaned"`

	// missing counts those that should exist but do not.
	// +optional
	Missing int `json:"missing"`

	// unknown counts those with unknown state.
	// +optional
	Unknown int `json:"unknown"`

	// notReady counts those that are applied but not ready.
	// +optional
	NotReady int `json:"notReady"`
}
