// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of a Work, on the hub.
const (
	// ParentBindingLabel is the name of the Work's binding.
	ParentBindingLabel = KeyPrefix + "parent-resource-binding"
	// ParentPlacementNamespaceLabel is the namespace of the placement. Absent for a cluster-scoped
	// one.
	ParentPlacementNamespaceLabel = KeyPrefix + "parent-placement-namespace"
	// ParentResourceSnapshotIndexLabel is the index of the group of resource snapshots from which
	// the hub created the Work.
	ParentResourceSnapshotIndexLabel = KeyPrefix + "parent-resource-snapshot-index"
	// EnvelopeTypeLabel, EnvelopeNameLabel and EnvelopeNamespaceLabel identify the envelope from
	// which the hub created the Work.
	EnvelopeTypeLabel      = KeyPrefix + "envelope-work"
	EnvelopeNameLabel      = KeyPrefix + "envelope-name"
	EnvelopeNamespaceLabel = KeyPrefix + "envelope-namespace"

	// ParentResourceSnapshotNameAnnotation is the name of the resource snapshot from which the hub
	// created the Work.
	ParentResourceSnapshotNameAnnotation = KeyPrefix + "parent-resource-snapshot-name"
	// ParentResourceOverrideSnapshotHashAnnotation and
	// ParentClusterResourceOverrideSnapshotHashAnnotation identify the override snapshots that the
	// hub applied to the Work.
	ParentResourceOverrideSnapshotHashAnnotation        = KeyPrefix + "parent-resource-override-snapshot-hash"
	ParentClusterResourceOverrideSnapshotHashAnnotation = KeyPrefix + "parent-cluster-resource-override-snapshot-hash"
)

// RenderedFromAnnotation is on a Work of a rendered Helm chart. Its value is the hash of the input,
// a dot, and the hash of the output. The hub does not render again while both hashes match.
const RenderedFromAnnotation = "fleetgate.io/rendered-from"

// RenderedForAnnotation is on a Work of a rendered Helm chart. Its value is the hash of what the chart
// could read of the member. If it is the same, a change of the chart or of an override removed an object.
const RenderedForAnnotation = "fleetgate.io/rendered-for"

// ImmutableChangeAnnotation is on a manifest, and sets what happens if an immutable field is to
// change. Its author writes it on the resource on the hub.
const (
	ImmutableChangeAnnotation = "fleetgate.io/immutable-change"
	// ImmutableChangeRecreate deletes and re-creates the object. With any other value, or if unset,
	// the agent does not change the object and reports the field.
	ImmutableChangeRecreate = "Recreate"
)

// SharedAnnotation is on a manifest. It allows Works of several placements to own its object
// together, if all set allowCoOwnership and the same type in their apply strategy. Its author
// writes it on the resource on the hub. If unset, the first Work owns the object.
const (
	SharedAnnotation = "fleetgate.io/shared"
	// SharedAmongPlacements is the only valid value of SharedAnnotation.
	SharedAmongPlacements = "Placements"
)

// LeaveToMemberAnnotation is on a manifest. Its value is JSON pointers of fields, separated by
// commas. The agent writes these fields when it creates the object and ignores them afterwards. Its
// author writes it on the resource on the hub.
const (
	LeaveToMemberAnnotation = "fleetgate.io/leave-to-member"
	// LeaveNothingToMember makes the agent enforce all fields, including those that autoscalers of
	// the member set.
	LeaveNothingToMember = "None"
)

// Annotations of an applied object, on the member.
const (
	// ManifestHashAnnotation is the hash of the last applied manifest.
	ManifestHashAnnotation = KeyPrefix + "spec-hash"
	// LastAppliedConfigAnnotation is the last applied manifest. Absent if it was applied
	// server-side.
	LastAppliedConfigAnnotation = KeyPrefix + "last-applied-configuration"
	// TakenOverAnnotation is on an object that existed on the member before a Work applied it. The
	// object stays on the member when it leaves the Work. The agent writes the annotation with its
	// first write of the object, and ignores it in manifests. On an AppliedWork it means that the
	// agent marks the Work's objects. Without it, every object that is older than the AppliedWork
	// counts as taken over.
	TakenOverAnnotation = "fleetgate.io/taken-over"
	// EnterLabel, with the value true on a Namespace of the member, lets Works be written into it
	// although it existed before. Only agents with works.onlyLabelledNamespaces read it.
	EnterLabel = "fleetgate.io/enter"
	// RetainedAnnotation is on an object that was retained on the member when its Work was deleted:
	// a Namespace or CustomResourceDefinition that contains an object which its value names, or data
	// whose placement no longer selects the member.
	RetainedAnnotation = "fleetgate.io/retained"
	// RetainedFromAnnotation is on an object that was retained since its placement no longer selects
	// the member. Its value names the placement, which adopts the object when it selects the member
	// again.
	RetainedFromAnnotation = "fleetgate.io/retained-from"
)

// EpochAnnotation is on a Work, and on its AppliedWork on the member. Its value is the generation
// and resourceVersion of the Work when an object last joined it, separated by a slash. A hub that
// lacks the value of the member was restored to an earlier state. The resourceVersion distinguishes
// equal generations of two restores. The agent writes it, on the hub first.
const EpochAnnotation = "fleetgate.io/epoch"

// ConditionStatusTrimmed is True on a Work whose status was too large to be written in full. Its
// other conditions are ConditionApplied, ConditionAvailable and ConditionDiffReported.
const ConditionStatusTrimmed = "StatusTrimmed"

// Condition types of a Work that only fleetgate has. Each is present only while it applies.
const (
	// ConditionContested is True, on a Work and on a manifest, while another client on the member
	// reverts the agent's corrections of an object.
	ConditionContested = "Contested"
	// ConditionWatched is False while the agent lacks the rights to watch all objects of the Work.
	// It then detects changes late.
	ConditionWatched = "Watched"
	// ConditionRemoved is False while a deleted Work waits for objects to disappear, and while the
	// agent lacks the rights to remove objects that left a Work.
	ConditionRemoved = "Removed"
	// ConditionRetained is True while the agent retains objects that are no longer in the Work. The
	// hub was restored to an earlier state, or another Work of the same name had applied the objects.
	ConditionRetained = "Retained"
)

// Reasons of a Work's conditions.
const (
	ReasonAllManifestsApplied        = "AllManifestsApplied"
	ReasonSomeManifestsAreNotApplied = "SomeManifestsAreNotApplied"

	ReasonAllManifestsAvailable        = "AllManifestsAvailable"
	ReasonWorkNotTrackable             = "WorkNotTrackable"
	ReasonSomeManifestsAreNotAvailable = "SomeManifestsAreNotAvailable"

	ReasonAllManifestsDiffReported         = "AllManifestsDiffReported"
	ReasonSomeManifestsHaveNotReportedDiff = "SomeManifestsHaveNotReportedDiff"

	// ReasonStatusOversized is a reason of ConditionStatusTrimmed.
	ReasonStatusOversized = "StatusOversized"
	// ReasonCorrectionsReverted is a reason of ConditionContested.
	ReasonCorrectionsReverted = "CorrectionsReverted"
	// ReasonWatchForbidden is a reason of ConditionWatched.
	ReasonWatchForbidden = "WatchForbidden"
	// ReasonObjectsRemain is a reason of ConditionRemoved.
	ReasonObjectsRemain = "ObjectsRemain"
	// ReasonHubRestored is a reason of ConditionRetained.
	ReasonHubRestored = "HubRestored"
	// ReasonWorkReplaced is a reason of ConditionRetained: the Work replaces another one of the same
	// name.
	ReasonWorkReplaced = "WorkReplaced"
)

// Reasons of the conditions of one manifest of a Work.
const (
	// Reasons of ConditionApplied=True.
	ReasonApplied                         = "Applied"
	ReasonAppliedWithFailedDriftDetection = "AppliedWithFailedDriftDetection"

	// Reasons of ConditionApplied=False.
	ReasonDecodingErred     = "DecodingErred"
	ReasonFoundGenerateName = "FoundGenerateName"
	ReasonDuplicated        = "Duplicated"
	// ReasonReserved: the manifest is in a namespace that is reserved for fleetgate, or is a type
	// of Secret that is never placed.
	ReasonReserved                       = "Reserved"
	ReasonFailedToFindObjInMemberCluster = "FailedToFindObjInMemberCluster"
	ReasonFailedToTakeOver               = "FailedToTakeOver"
	ReasonNotTakenOver                   = "NotTakenOver"
	ReasonFailedToRunDriftDetection      = "FailedToRunDriftDetection"
	ReasonFoundDrifts                    = "FoundDrifts"
	ReasonFoundDriftsInDegradedMode      = "FoundDriftsInDegradedMode"
	ReasonManifestApplyFailed            = "ManifestApplyFailed"
	// ReasonFieldsNotApplied: the member accepted the manifest, but its object does not have all
	// fields of it.
	ReasonFieldsNotApplied = "FieldsNotApplied"

	// Reasons of ConditionDiffReported.
	ReasonNoDiffFound             = "NoDiffFound"
	ReasonFoundDiff               = "FoundDiff"
	ReasonFoundDiffInDegradedMode = "FoundDiffInDegradedMode"
	ReasonFailedToReportDiff      = "FailedToReportDiff"

	// Reasons of ConditionAvailable.
	ReasonAvailable               = "Available"
	ReasonManifestNotAvailableYet = "ManifestNotAvailableYet"
	ReasonNotTrackable            = "NotTrackable"
	ReasonFailed                  = "Failed"
	ReasonSkipped                 = "Skipped"
	// ReasonCompleted: the object ran to completion, such as a Job. The agent does not run it
	// again.
	ReasonCompleted = "Completed"
	// ReasonCompletionUnknown: the object is deleted after it finishes, and disappeared before the
	// agent saw it finish. The agent does not run it again.
	ReasonCompletionUnknown = "CompletionUnknown"
)

// WorkName returns the name of the Work of a placement's master snapshot. The namespace is empty
// for a cluster-scoped placement.
func WorkName(namespace, placement string) string {
	return workNameBase(namespace, placement) + "-work"
}

// SubWorkName returns the name of the Work of the snapshot with a subindex.
func SubWorkName(namespace, placement string, subindex int) string {
	return workNameBase(namespace, placement) + "-" + strconv.Itoa(subindex)
}

// EnvelopeWorkName returns the name of the Work of an envelope. A hash distinguishes envelopes of
// the same name in one group.
func EnvelopeWorkName(namespace, placement string, envelope EnvelopeIdentifier) string {
	id := string(envelope.Type) + "/" + envelope.Namespace + "/" + envelope.Name
	sum := sha256.Sum256([]byte(id))
	return workNameBase(namespace, placement) + "-envelope-" + hex.EncodeToString(sum[:8])
}

func workNameBase(namespace, placement string) string {
	if namespace == "" {
		return placement
	}
	return namespace + "." + placement
}

// Work is a set of objects for one member, in the member's namespace on the hub. The hub writes it;
// the agent applies the objects and writes the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status!="True")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
type Work struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	//
	// +optional
	Spec WorkSpec `json:"spec,omitzero"`

	// status is what the member reports.
	//
	// +optional
	Status WorkStatus `json:"status,omitzero"`
}

// WorkList is a list of Works.
//
// +kubebuilder:object:root=true
type WorkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Work `json:"items"`
}

// WorkSpec is the desired state of a Work.
type WorkSpec struct {
	// workload holds the objects.
	//
	// +optional
	Workload WorkloadTemplate `json:"workload,omitzero"`

	// applyStrategy sets how they are applied. If unset, the defaults.
	//
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// reportBackStrategy sets whether their status is reported to the hub. If unset, it is not.
	//
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// WorkloadTemplate holds the objects of a Work.
type WorkloadTemplate struct {
	// manifests are complete objects. If empty, previously applied objects are removed.
	//
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// WorkStatus is what a member reports about a Work.
type WorkStatus struct {
	// conditions of the Work as a whole. The API server rejects null; use an empty list.
	//
	// +required
	Conditions []metav1.Condition `json:"conditions"`

	// manifestConditions has an entry per object, including objects that left the Work and are not
	// gone yet.
	//
	// +optional
	ManifestConditions []ManifestCondition `json:"manifestConditions,omitempty"`
}

// WorkResourceIdentifier identifies an object of a Work.
type WorkResourceIdentifier struct {
	// ordinal is the position of the object in the Work's manifests, from 0.
	//
	// +required
	Ordinal int `json:"ordinal"`

	// group of the object; empty for the core group.
	//
	// +optional
	Group string `json:"group,omitempty"`

	// version of the object. Empty if the manifest cannot be decoded.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the object. Empty if the manifest cannot be decoded.
	//
	// +optional
	Kind string `json:"kind,omitempty"`

	// resource is the plural name. Empty if the member does not serve the kind.
	//
	// +optional
	Resource string `json:"resource,omitempty"`

	// namespace of the object; empty if cluster-scoped.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	//
	// +optional
	Name string `json:"name,omitempty"`
}

// ManifestCondition is the observed state of one object of a Work.
type ManifestCondition struct {
	// identifier of the object.
	//
	// +required
	Identifier WorkResourceIdentifier `json:"identifier"`

	// conditions of the object: Applied, Available, DiffReported.
	//
	// +required
	Conditions []metav1.Condition `json:"conditions"`

	// driftDetails are changes of the object on the member. Unset if there are none.
	//
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`

	// diffDetails are differences from the hub that were not written. Unset if there are none.
	//
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`

	// backReportedStatus is its status on the member, if requested.
	//
	// +optional
	BackReportedStatus *BackReportedStatus `json:"backReportedStatus,omitempty"`
}

// DriftDetails are changes of an applied object on the member.
type DriftDetails struct {
	// observationTime is the time of the last check.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// observedInMemberClusterGeneration is the generation at that check.
	//
	// +required
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration"`

	// firstDriftedObservedTime is when the drift was first observed.
	//
	// +required
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`

	// observedDrifts are the fields that differ.
	//
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffDetails are the differences between the hub and an object on the member.
type DiffDetails struct {
	// observationTime is the time of the last check.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// observedInMemberClusterGeneration is the generation at that check. Unset if the object does
	// not exist.
	//
	// +optional
	ObservedInMemberClusterGeneration *int64 `json:"observedInMemberClusterGeneration,omitempty"`

	// firstDiffedObservedTime is when the difference was first observed.
	//
	// +required
	FirstDiffedObservedTime metav1.Time `json:"firstDiffedObservedTime"`

	// observedDiffs are the fields that differ.
	//
	// +optional
	ObservedDiffs []PatchDetail `json:"observedDiffs,omitempty"`
}

// BackReportedStatus is the status of an object on the member.
type BackReportedStatus struct {
	// observedStatus has only apiVersion, kind, metadata.name and status of the object.
	//
	// +optional
	ObservedStatus Manifest `json:"observedStatus,omitzero"`

	// observationTime is when the status was read.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}
