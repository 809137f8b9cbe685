// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GenericCondition is a condition in the form of this group: unlike
// metav1.Condition it has a time of update, and its times are plain text.
type GenericCondition struct {
	// type names the condition.
	Type string `json:"type"`

	// status is True, False or Unknown.
	Status corev1.ConditionStatus `json:"status"`

	// lastUpdateTime is when anything of the condition changed, in RFC 3339.
	// +optional
	LastUpdateTime string `json:"lastUpdateTime,omitempty"`

	// lastTransitionTime is when status changed, in RFC 3339.
	// +optional
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`

	// reason is one word for why.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people: what is, and what to do.
	// +optional
	Message string `json:"message,omitempty"`
}

// WithCondition adds or replaces the condition; one that does not change keeps its times.
// It may change the given list.
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

// DeploymentSummary counts deployments by state.
type DeploymentSummary struct {
	// notReady counts those that are applied and do not work yet.
	// +optional
	NotReady int `json:"notReady,omitempty"`

	// waitApplied counts those that are not applied yet.
	// +optional
	WaitApplied int `json:"waitApplied,omitempty"`

	// errApplied counts those that could not be applied.
	// +optional
	ErrApplied int `json:"errApplied,omitempty"`

	// outOfSync counts those of which an older version is applied.
	// +optional
	OutOfSync int `json:"outOfSync,omitempty"`

	// modified counts those that were changed on the cluster.
	// +optional
	Modified int `json:"modified,omitempty"`

	// ready counts those that work.
	// +optional
	Ready int `json:"ready"`

	// pending counts those that wait for their turn.
	// +optional
	Pending int `json:"pending,omitempty"`

	// desiredReady counts all.
	// +optional
	DesiredReady int `json:"desiredReady"`

	// nonReadyResources are some of those that do not work, and why.
	// +nullable
	// +optional
	NonReadyResources []NonReadyResource `json:"nonReadyResources,omitempty"`
}

// NonReadyResource is a deployment that does not work.
type NonReadyResource struct {
	// name is the deployment's.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`

	// bundleState is the state it is in.
	// +nullable
	// +optional
	State string `json:"bundleState,omitempty"`

	// message says why.
	// +nullable
	// +optional
	Message string `json:"message,omitempty"`

	// modifiedStatus are its resources that were changed on the cluster.
	// +nullable
	// +optional
	ModifiedStatus []ModifiedStatus `json:"modifiedStatus,omitempty"`

	// nonReadyStatus are its resources that do not work.
	// +nullable
	// +optional
	NonReadyStatus []NonReadyStatus `json:"nonReadyStatus,omitempty"`
}

// ModifiedStatus is a resource that was changed on the cluster.
type ModifiedStatus struct {
	// kind is the resource's.
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`

	// apiVersion is the resource's.
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// namespace is the resource's. Empty if it is cluster-scoped.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the resource's.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`

	// missing is true if it should exist and does not.
	// +optional
	Missing bool `json:"missing,omitempty"`

	// exist is true if it is there and belongs to another.
	// +optional
	Exist bool `json:"exist,omitempty"`

	// delete is true if it exists and should not.
	// +optional
	Delete bool `json:"delete,omitempty"`

	// patch is what would undo the change, as JSON.
	// +nullable
	// +optional
	Patch string `json:"patch,omitempty"`
}

// NonReadyStatus is a resource that does not work.
type NonReadyStatus struct {
	// uid is the resource's.
	// +nullable
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// kind is the resource's.
	// +nullable
	// +optional
	Kind string `json:"kind,omitempty"`

	// apiVersion is the resource's.
	// +nullable
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// namespace is the resource's. Empty if it is cluster-scoped.
	// +nullable
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the resource's.
	// +nullable
	// +optional
	Name string `json:"name,omitempty"`

	// summary is the state of the resource.
	// +optional
	Summary ResourceState `json:"summary,omitzero"`
}

// ResourceState is the state of a resource in a few words.
type ResourceState struct {
	// state is one word.
	// +optional
	State string `json:"state,omitempty"`

	// error is true if it will not become ready by waiting.
	// +optional
	Error bool `json:"error,omitempty"`

	// transitioning is true if it is on its way.
	// +optional
	Transitioning bool `json:"transitioning,omitempty"`

	// message says more, a sentence each.
	// +optional
	Message []string `json:"message,omitempty"`
}

// ResourceCounts counts resources by state.
type ResourceCounts struct {
	// ready counts those that work.
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

	// orphaned counts those that exist and should not.
	// +optional
	Orphaned int `json:"orphaned"`

	// missing counts those that should exist and do not.
	// +optional
	Missing int `json:"missing"`

	// unknown counts those of which nothing is known.
	// +optional
	Unknown int `json:"unknown"`

	// notReady counts those that are applied and do not work yet.
	// +optional
	NotReady int `json:"notReady"`
}
