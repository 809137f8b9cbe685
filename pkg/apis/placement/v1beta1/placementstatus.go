// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of a placement on one member, in the order in which they become True. Each is
// Unknown or absent until the previous one is True. Bindings have the same types. A placement has
// them with its kind as prefix (PlacementObject.ConditionType). With apply strategy ReportDiff,
// DiffReported replaces Applied and Available.
const (
	// ConditionScheduled is True when the scheduler has picked the member.
	ConditionScheduled = "Scheduled"
	// ConditionRolloutStarted is True when the rollout moves the member to the newest snapshot.
	ConditionRolloutStarted = "RolloutStarted"
	// ConditionOverridden is True when all matching overrides have been applied.
	ConditionOverridden = "Overridden"
	// ConditionWorkSynchronized is True when the Works in the member's namespace are up to date.
	ConditionWorkSynchronized = "WorkSynchronized"
	// ConditionApplied is True when the member has applied the Works. Works and manifests have this
	// type too.
	ConditionApplied = "Applied"
	// ConditionAvailable is True when the applied resources are available, or their availability
	// cannot be tracked. Works and manifests have this type too.
	ConditionAvailable = "Available"
	// ConditionDiffReported is True when the member has reported its diff. Works and manifests have
	// this type too.
	ConditionDiffReported = "DiffReported"
)

// ConditionStatusSynced with the kind as prefix is a condition of a NamespaceAccessible
// placement. It is True when the status has been copied to the namespace.
const ConditionStatusSynced = "StatusSynced"

// Reasons of a placement's own conditions. Each constant is named Reason followed by its value.
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

// ReasonNothingSelected is a value of status.reason only, not of a condition: upstream clients
// expect all conditions of a placement without resources to be True.
const ReasonNothingSelected = "NothingSelected"

// ReasonSelectorUnmatched is a value of status.reason only, for a placement without another problem
// of whose selectors some name objects that are not selected.
const ReasonSelectorUnmatched = "SelectorUnmatched"

// Reasons of ConditionScheduled on one member. The other conditions have the reasons of the
// binding.
const (
	ReasonScheduled      = "Scheduled"
	ReasonScheduleFailed = "ScheduleFailed"
)

// PlacementStatus is the observed state of a placement.
type PlacementStatus struct {
	// selectedResources are the objects that the selectors match now, sorted.
	//
	// +optional
	SelectedResources []ResourceIdentifier `json:"selectedResources,omitempty"`

	// observedResourceIndex is the index of the resource snapshot to which the conditions refer.
	// With an External rollout, unset until all members have the same snapshot.
	//
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`

	// placementStatuses has an entry for each picked member and, for PickN and PickFixed, an
	// unnamed entry for each missing member.
	//
	// +optional
	PlacementStatuses []PerClusterPlacementStatus `json:"placementStatuses,omitempty"`

	// members is how many of the desired members have all conditions True, such as 2/3. Unset until
	// the scheduler has decided.
	//
	// +optional
	Members string `json:"members,omitempty"`

	// available is the status of the placement's Available condition or, while that is absent, of
	// the condition before it: False after a failed apply. Unset if all of them are absent, and
	// with apply strategy ReportDiff.
	//
	// +optional
	Available metav1.ConditionStatus `json:"available,omitempty"`

	// reason of the most severe problem or, without one, of the first condition that is not True.
	// It also covers what conditions do not show: an unreachable member hides failures of others,
	// and a placement that selects nothing has all conditions True.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message describes the reason.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// conditions of the placement as a whole, each with the generation that it observed.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SelectsNothing reports whether the selectors are known to match nothing.
func (s *PlacementStatus) SelectsNothing() bool {
	return s.ObservedResourceIndex != "" && len(s.SelectedResources) == 0
}

// ResourceIdentifier identifies a placed object.
type ResourceIdentifier struct {
	// group of the object; empty for the core group.
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

	// namespace of the object; empty if cluster-scoped.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// envelope that holds the object on the hub. If unset, the object is not in an envelope.
	//
	// +optional
	Envelope *EnvelopeIdentifier `json:"envelope,omitempty"`
}

// EnvelopeIdentifier identifies an envelope.
type EnvelopeIdentifier struct {
	// name of the envelope.
	//
	// +required
	Name string `json:"name"`

	// namespace of the envelope; empty if cluster-scoped.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// type is the kind of the envelope. Default ConfigMap.
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
	// ConfigMapEnvelopeType is a ConfigMap with HelmChartAnnotation or, if the gateway is
	// configured to treat these as envelopes, with ConfigMapEnvelopeAnnotation.
	ConfigMapEnvelopeType EnvelopeType = "ConfigMap"
	// SecretEnvelopeType is a Secret with HelmChartAnnotation.
	SecretEnvelopeType EnvelopeType = "Secret"
	// ClusterResourceEnvelopeType is a ClusterResourceEnvelope.
	ClusterResourceEnvelopeType EnvelopeType = "ClusterResourceEnvelope"
	// ResourceEnvelopeType is a ResourceEnvelope.
	ResourceEnvelopeType EnvelopeType = "ResourceEnvelope"
)

// PerClusterPlacementStatus is the observed state of a placement on one member.
type PerClusterPlacementStatus struct {
	// clusterName is the name of the member. If unset, no member was found for this entry.
	//
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// applicableResourceOverrides are the matching ResourceOverride snapshots.
	//
	// +optional
	ApplicableResourceOverrides []NamespacedName `json:"applicableResourceOverrides,omitempty"`

	// applicableClusterResourceOverrides are the matching ClusterResourceOverride snapshots.
	//
	// +optional
	ApplicableClusterResourceOverrides []string `json:"applicableClusterResourceOverrides,omitempty"`

	// failedPlacements are objects that could not be applied, are not available or whose diff could
	// not be computed; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	FailedPlacements []FailedResourcePlacement `json:"failedPlacements,omitempty"`

	// driftedPlacements are objects that were changed on the member after they were applied; at
	// most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DriftedPlacements []DriftedResourcePlacement `json:"driftedPlacements,omitempty"`

	// diffedPlacements are objects that differ from the hub and were not written; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	DiffedPlacements []DiffedResourcePlacement `json:"diffedPlacements,omitempty"`

	// observedResourceIndex is the index of the resource snapshot of the member, current or in
	// progress.
	//
	// +optional
	ObservedResourceIndex string `json:"observedResourceIndex,omitempty"`

	// conditions of the placement on this member.
	//
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// NamespacedName identifies a namespaced object.
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

// FailedResourcePlacement is an object that failed, with its condition.
type FailedResourcePlacement struct {
	// The object.
	ResourceIdentifier `json:",inline"`

	// condition that is not True: Applied, Available or DiffReported.
	//
	// +required
	Condition metav1.Condition `json:"condition"`
}

// DriftedResourcePlacement is an object that was changed on the member.
type DriftedResourcePlacement struct {
	// The object.
	ResourceIdentifier `json:",inline"`

	// observationTime is the time of the last check.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// targetClusterObservedGeneration is the generation of the member's object at that check.
	//
	// +required
	TargetClusterObservedGeneration int64 `json:"targetClusterObservedGeneration"`

	// firstDriftedObservedTime is when the drift was first observed.
	//
	// +required
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`

	// observedDrifts are the fields that differ.
	//
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffedResourcePlacement is an object on the member that differs from the hub and was not written.
type DiffedResourcePlacement struct {
	// The object.
	ResourceIdentifier `json:",inline"`

	// observationTime is the time of the last check.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// targetClusterObservedGeneration is the generation of the member's object at that check. Unset
	// if the object does not exist.
	//
	// +optional
	TargetClusterObservedGeneration *int64 `json:"targetClusterObservedGeneration,omitempty"`

	// firstDiffedObservedTime is when the difference was first observed.
	//
	// +required
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`

	// observedDiffs are the fields that differ.
	//
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// PatchDetail is one field that differs. Values of Secrets are redacted.
type PatchDetail struct {
	// path is the JSON pointer of the field.
	//
	// +required
	Path string `json:"path"`

	// valueInMember is the value on the member. Empty if the field is absent there.
	//
	// +optional
	ValueInMember string `json:"valueInMember,omitempty"`

	// valueInHub is the value on the hub. Empty if the field is absent there.
	//
	// +optional
	ValueInHub string `json:"valueInHub,omitempty"`
}

// ClusterResourcePlacementStatus copies the status of a ClusterResourcePlacement of the same name
// into the namespace that it selects, for users who can read only that. The hub writes it.
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

	// sourceStatus is the placement's status, without the condition about this copy.
	//
	// +required
	SourceStatus PlacementStatus `json:"sourceStatus"`

	// lastUpdatedTime is the time of the copy.
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
