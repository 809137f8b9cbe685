// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The conditions of a placement on one member, in the order in which they come
// true; each is Unknown or absent until the one before it is true. Bindings
// carry the same types, and a placement as a whole carries them with its kind
// in front (PlacementObject.ConditionType). With apply strategy ReportDiff,
// DiffReported comes in place of Applied and Available.
const (
	// ConditionScheduled: a member was chosen.
	ConditionScheduled = "Scheduled"
	// ConditionRolloutStarted: the member is being moved to the newest snapshot.
	ConditionRolloutStarted = "RolloutStarted"
	// ConditionOverridden: the overrides that match have been applied.
	ConditionOverridden = "Overridden"
	// ConditionWorkSynchronized: the Works in the member's namespace are right.
	ConditionWorkSynchronized = "WorkSynchronized"
	// ConditionApplied: the member has applied them. Works and their manifests
	// carry this type too.
	ConditionApplied = "Applied"
	// ConditionAvailable: what was applied works, or cannot be tracked. Works
	// and their manifests carry this type too.
	ConditionAvailable = "Available"
	// ConditionDiffReported: the member has reported what would be different.
	// Works and their manifests carry this type too.
	ConditionDiffReported = "DiffReported"
)

// ConditionStatusSynced is, with the kind in front, a condition of a
// NamespaceAccessible placement: its status has been copied into the namespace.
const ConditionStatusSynced = "StatusSynced"

// The reasons of a placement's own conditions. Every constant is the word
// Reason and the reason itself.
const (
	ReasonSchedulePending             = "SchedulePending"
	ReasonSchedulingPolicyFulfilled   = "SchedulingPolicyFulfilled"
	ReasonSchedulingPolicyUnfulfilled = "SchedulingPolicyUnfulfilled"
	ReasonInvalidResourceSelectors    = "InvalidResourceSelectors"

	ReasonRolloutStartedUnknown                 = "RolloutStartedUnknown"
	ReasonRolloutControlledByExternalController = "RolloutControlledByExternalController"
	ReasonRolloutNotStartedYet                  = "RolloutNotStartedYet"
	ReasonRolloutStarted                        = "RolloutStarted"

	ReasonOverriddenPending   = "OverriddenPending"
	ReasonOverriddenFailed    = "OverriddenFailed"
	ReasonOverriddenSucceeded = "OverriddenSucceeded"
	ReasonNoOverrideSpecified = "NoOverrideSpecified"

	ReasonWorkSynchronizedUnknown = "WorkSynchronizedUnknown"
	ReasonWorkNotSynchronizedYet  = "WorkNotSynchronizedYet"
	ReasonWorkSynchronized        = "WorkSynchronized"

	ReasonApplyPending   = "ApplyPending"
	ReasonApplyFailed    = "ApplyFailed"
	ReasonApplySucceeded = "ApplySucceeded"

	ReasonResourceAvailableUnknown = "ResourceAvailableUnknown"
	ReasonResourceNotAvailableYet  = "ResourceNotAvailableYet"
	ReasonResourceAvailable        = "ResourceAvailable"

	ReasonDiffReportingPending            = "DiffReportingPending"
	ReasonDiffReportingIncompleteOrFailed = "DiffReportingIncompleteOrFailed"
	ReasonDiffReportingCompleted          = "DiffReportingCompleted"

	ReasonStatusSyncSucceeded = "StatusSyncSucceeded"
	ReasonStatusSyncFailed    = "StatusSyncFailed"
)

// ReasonNothingSelected is the status' own reason, and no condition's: clients know which
// conditions a placement without resources has, and those are all True.
const ReasonNothingSelected = "NothingSelected"

// The reasons of ConditionScheduled on one member; its other conditions have
// the reasons of the binding.
const (
	ReasonScheduled      = "Scheduled"
	ReasonScheduleFailed = "ScheduleFailed"
)

// PlacementStatus is what became of a placement.
type PlacementStatus struct {
	// selectedResources are the objects that the selectors choose now, sorted.
	//
	// +optional
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`

	// observedResourceIndex is the index of the resource snapshot that the
	// conditions are about. Empty under an external rollout until all members
	// are on the same snapshot.
	//
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`

	// placementStatuses has an entry for each chosen member and, for PickN and
	// PickFixed, one without a name for each member that is missing.
	//
	// +optional
	PlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`

	// members says on how many of the members that the policy asks for all
	// conditions are true, such as 2/3. Empty until the scheduler has decided.
	//
	// +optional
	Members string `json:"members,omitempty"`

	// available is the condition Available of the placement or, as long as that is not
	// there, the one that it waits for: False after a failed apply. Empty if nothing is
	// known of a member, and with apply strategy ReportDiff, which waits for something else.
	//
	// +optional
	Available metav1.ConditionStatus `json:"available,omitempty"`

	// reason is the reason of what is worst, also where conditions do not tell it: a member
	// of which nothing is known hides another one's failure there, and a placement that
	// selects nothing has none but good ones. Empty if all is well.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is the sentence that goes with the reason.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// conditions of the placement as a whole; each carries the generation that
	// it is about.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SelectsNothing reports whether it is known that the selectors match nothing.
func (s *PlacementStatus) SelectsNothing() bool {
	return s.ObservedResourceIndex != "" && len(s.SelectedResources) == 0
}

// ResourceIdentifier names an object that is placed.
type ResourceIdentifier struct {
	// group of the object, empty for the core group.
	//
	// +optional
	Group string `json:"group,omitempty"`

	// version of the object.
	//
	// +required
	Version string `json:"version"`

	// kind of the object.
	//
	// +required
	Kind string `json:"kind"`

	// name of the object.
	//
	// +required
	Name string `json:"name"`

	// namespace of the object, empty for a cluster-scoped one.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// envelope is where the object lies on the hub. Empty means that it stands
	// there itself.
	//
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// EnvelopeIdentifier names an envelope.
type EnvelopeIdentifier struct {
	// name of the envelope.
	//
	// +required
	Name string `json:"name"`

	// namespace of the envelope, empty for a cluster-scoped one.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// type is the envelope's kind. Default ConfigMap.
	//
	// +optional
	// +kubebuilder:default=ConfigMap
	Type EnvelopeType `json:"type,omitempty"`
}

// EnvelopeType is the kind of an envelope.
//
// +kubebuilder:validation:Enum=ConfigMap;Secret;ClusterResourceEnvelope;ResourceEnvelope
type EnvelopeType string

const (
	// ConfigMapEnvelopeType is a ConfigMap with ConfigMapEnvelopeAnnotation, on a hub
	// that is told to take such for envelopes, or with HelmChartAnnotation.
	ConfigMapEnvelopeType EnvelopeType = "ConfigMap"
	// SecretEnvelopeType is a Secret with HelmChartAnnotation.
	SecretEnvelopeType EnvelopeType = "Secret"
	// ClusterResourceEnvelopeType is a ClusterResourceEnvelope.
	ClusterResourceEnvelopeType EnvelopeType = "ClusterResourceEnvelope"
	// ResourceEnvelopeType is a ResourceEnvelope.
	ResourceEnvelopeType EnvelopeType = "ResourceEnvelope"
)

// PerClusterPlacementStatus is what became of a placement on one member.
type PerClusterPlacementStatus struct {
	// clusterName is the member's name. Empty means a member that was wanted
	// and not found.
	//
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// applicableResourceOverrides are the snapshots of the ResourceOverrides
	// that match.
	//
	// +optional
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`

	// applicableClusterResourceOverrides are the snapshots of the
	// ClusterResourceOverrides that match.
	//
	// +optional
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`

	// failedPlacements are objects that could not be applied, are not
	// available or whose difference could not be found; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`

	// driftedPlacements are objects that were changed on the member after they
	// had been applied; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`

	// diffedPlacements are objects that differ from the hub's and have not been
	// written; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`

	// observedResourceIndex is the index of the resource snapshot that the
	// member is on, or moving to.
	//
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`

	// conditions of the placement on this member.
	//
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NamespacedName names a namespaced object.
type NamespacedName struct {
	// name of the object.
	//
	// +required
	Name string `json:"name"`

	// namespace of the object.
	//
	// +required
	Namespace string `json:"namespace"`
}

// FailedResourcePlacement is an object with what went wrong.
type FailedResourcePlacement struct {
	// The object.
	ResourceIdentifier `json:",inline"`

	// condition is the one that is not true: Applied, Available or DiffReported.
	//
	// +required
	Condition metav1.Condition `json:"condition"`
}

// DriftedResourcePlacement is an object that was changed on the member.
type DriftedResourcePlacement struct {
	// The object.
	ResourceIdentifier `json:",inline"`

	// observationTime is when it was last looked at.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// targetClusterObservedGeneration is the generation of the object on the
	// member that was looked at.
	//
	// +required
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`

	// firstDriftedObservedTime is when the drift was first seen.
	//
	// +required
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`

	// observedDrifts are the fields that differ.
	//
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffedResourcePlacement is an object on the member that is not as the hub
// wants it, and was not written.
type DiffedResourcePlacement struct {
	// The object.
	ResourceIdentifier `json:",inline"`

	// observationTime is when it was last looked at.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// targetClusterObservedGeneration is the generation of the object on the
	// member that was looked at. Empty means that there is no such object.
	//
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`

	// firstDiffedObservedTime is when the difference was first seen.
	//
	// +required
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`

	// observedDiffs are the fields that differ.
	//
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// PatchDetail is one field that differs. Values of Secrets are not shown.
type PatchDetail struct {
	// path is the JSON pointer of the field.
	//
	// +required
	Path string `json:"path"`

	// valueInMember is the member's value. Empty means that the member does not
	// have the field.
	//
	// +optional
	ValueInMember string `json:"valueInMember,omitempty"`

	// valueInHub is the hub's value. Empty means that the hub does not have the
	// field.
	//
	// +optional
	ValueInHub string `json:"valueInHub,omitempty"`
}

// ClusterResourcePlacementStatus is a copy of a ClusterResourcePlacement's
// status in the namespace that it selects, for users who may read only that.
// It has the placement's name.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=crps,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Resource-Index",type=string,JSONPath=`.sourceStatus.observedResourceIndex`
// +kubebuilder:printcolumn:name="Last-Updated",type=string,JSONPath=`.lastUpdatedTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacementStatus struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// sourceStatus is the placement's status, without the condition that tells
	// of this copy.
	//
	// +required
	SourceStatus PlacementStatus `json:"sourceStatus"`

	// lastUpdatedTime is when the copy was made.
	//
	// +required
	LastUpdatedTime metav1.Time `json:"lastUpdatedTime"`
}

// ClusterResourcePlacementStatusList is a list of ClusterResourcePlacementStatuses.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacementStatus `json:"items"`
}
