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
	// ParentBindingLabel is the name of the binding that the Work belongs to.
	ParentBindingLabel = KeyPrefix + "parent-resource-binding"
	// ParentPlacementNamespaceLabel is the namespace of the placement; absent
	// for a cluster-scoped one.
	ParentPlacementNamespaceLabel = KeyPrefix + "parent-placement-namespace"
	// ParentResourceSnapshotIndexLabel is the index of the group of resource
	// snapshots that the Work was made from.
	ParentResourceSnapshotIndexLabel = KeyPrefix + "parent-resource-snapshot-index"
	// EnvelopeTypeLabel, EnvelopeNameLabel and EnvelopeNamespaceLabel are on a
	// Work made from an envelope and name it.
	EnvelopeTypeLabel      = KeyPrefix + "envelope-work"
	EnvelopeNameLabel      = KeyPrefix + "envelope-name"
	EnvelopeNamespaceLabel = KeyPrefix + "envelope-namespace"

	// ParentResourceSnapshotNameAnnotation is the name of the resource
	// snapshot that the Work was made from.
	ParentResourceSnapshotNameAnnotation = KeyPrefix + "parent-resource-snapshot-name"
	// ParentResourceOverrideSnapshotHashAnnotation and
	// ParentClusterResourceOverrideSnapshotHashAnnotation tell which override
	// snapshots went into the Work.
	ParentResourceOverrideSnapshotHashAnnotation        = KeyPrefix + "parent-resource-override-snapshot-hash"
	ParentClusterResourceOverrideSnapshotHashAnnotation = KeyPrefix + "parent-cluster-resource-override-snapshot-hash"
)

// RenderedFromAnnotation is on a Work that a Helm chart was rendered into: the hash of what
// it was rendered from, a dot, and the hash of what came of it. While both are as they
// should be nothing is rendered.
const RenderedFromAnnotation = "fleetgate.io/rendered-from"

// DeletePolicyAnnotation is on a Work or binding that is about to be deleted, and says what
// happens to what it applied. The hub writes it before it deletes the Work. It is also on a
// placed object, whose author writes it, and says what happens to the object when it leaves
// its Work.
const (
	DeletePolicyAnnotation = "fleetgate.io/delete-policy"
	// DeletePolicyAbandon leaves the objects on the member, owned by nobody. Any
	// other value, and none, removes them.
	DeletePolicyAbandon = "Abandon"
	// DeletePolicyDelete, on a placed object only, deletes it although it existed before it
	// was placed, or contains objects of others.
	DeletePolicyDelete = "Delete"
)

// ImmutableChangeAnnotation is on a manifest and says what happens when a field is
// to change that cannot be changed. Its author writes it, on the resource that is
// placed.
const (
	ImmutableChangeAnnotation = "fleetgate.io/immutable-change"
	// ImmutableChangeRecreate has the object deleted and made again. Any other
	// value, and none, leaves it as it is and reports the field.
	ImmutableChangeRecreate = "Recreate"
)

// SharedAnnotation is on a manifest and lets Works of several placements own its object
// together, if all of them have allowCoOwnership and the same type in their apply strategy.
// Its author writes it, on the resource that is placed. Without it the first has the object.
const (
	SharedAnnotation = "fleetgate.io/shared"
	// SharedAmongPlacements is the value that counts.
	SharedAmongPlacements = "Placements"
)

// LeaveToMemberAnnotation is on a manifest and names fields of it, as JSON pointers with commas
// between them, that are written when the object is made and left to the member afterwards. Its
// author writes it, on the resource that is placed.
const (
	LeaveToMemberAnnotation = "fleetgate.io/leave-to-member"
	// LeaveNothingToMember is the value with which nothing is left to the member, not even what
	// its autoscalers decide.
	LeaveNothingToMember = "None"
)

// Annotations of an applied object, on the member.
const (
	// ManifestHashAnnotation is the hash of the manifest last applied.
	ManifestHashAnnotation = KeyPrefix + "spec-hash"
	// LastAppliedConfigAnnotation is the manifest last applied; absent when it
	// was applied server-side.
	LastAppliedConfigAnnotation = KeyPrefix + "last-applied-configuration"
	// TakenOverAnnotation is on an object that existed on the member before a Work applied it.
	// It stays on the member when it leaves the Work. The agent writes the annotation with its
	// first write of the object, and ignores it in manifests. On an AppliedWork it says that
	// the agent writes it on the Work's objects: of an older AppliedWork, every object that is
	// older still counts as taken over.
	TakenOverAnnotation = "fleetgate.io/taken-over"
	// RetainedAnnotation is on a Namespace or CustomResourceDefinition that a Work applied and
	// left on the member when it was deleted. It names an object that keeps it.
	RetainedAnnotation = "fleetgate.io/retained"
)

// EpochAnnotation is on a Work, and on its AppliedWork on the member: the Work's generation and
// resourceVersion when an object joined it last, with a slash between. A hub that lacks what
// the member has went back to an earlier state. The resourceVersion tells a generation from
// the same of another restore. The agent writes it, on the hub first.
const EpochAnnotation = "fleetgate.io/epoch"

// ConditionStatusTrimmed is on a Work whose status was too large to be written
// in full. Its other conditions are ConditionApplied, ConditionAvailable and
// ConditionDiffReported.
const ConditionStatusTrimmed = "StatusTrimmed"

// Conditions of a Work that are fleetgate's own. Each is there only while it has
// something to say.
const (
	// ConditionContested is true, of a Work and of a manifest, while somebody on the
	// member changes an object back as often as it is repaired.
	ConditionContested = "Contested"
	// ConditionWatched is false while the agent may not watch all that the Work
	// applies: changes there are found late.
	ConditionWatched = "Watched"
	// ConditionRemoved is false while a deleted Work waits for objects to be gone, and
	// while the agent may not remove what is no longer in a Work.
	ConditionRemoved = "Removed"
	// ConditionHeld is true while objects stay on the member that have left the Work, since
	// the hub went back to an earlier state, or it is another Work than that which brought them.
	ConditionHeld = "Held"
)

// The reasons of a Work's conditions.
const (
	ReasonAllManifestsApplied        = "AllManifestsApplied"
	ReasonSomeManifestsAreNotApplied = "SomeManifestsAreNotApplied"

	ReasonAllManifestsAvailable        = "AllManifestsAvailable"
	ReasonWorkNotTrackable             = "WorkNotTrackable"
	ReasonSomeManifestsAreNotAvailable = "SomeManifestsAreNotAvailable"

	ReasonAllManifestsDiffReported         = "AllManifestsDiffReported"
	ReasonSomeManifestsHaveNotReportedDiff = "SomeManifestsHaveNotReportedDiff"

	// ReasonStatusOversized is of ConditionStatusTrimmed.
	ReasonStatusOversized = "StatusOversized"
	// ReasonRepairsReverted is of ConditionContested.
	ReasonRepairsReverted = "RepairsReverted"
	// ReasonMayNotWatch is of ConditionWatched.
	ReasonMayNotWatch = "MayNotWatch"
	// ReasonObjectsRemain is of ConditionRemoved.
	ReasonObjectsRemain = "ObjectsRemain"
	// ReasonHubWentBack is of ConditionHeld.
	ReasonHubWentBack = "HubWentBack"
	// ReasonAnotherWork is of ConditionHeld: the Work has come in the place of another.
	ReasonAnotherWork = "AnotherWork"
)

// The reasons of the conditions of one manifest of a Work.
const (
	// Of ConditionApplied when it is true.
	ReasonApplied                         = "Applied"
	ReasonAppliedWithFailedDriftDetection = "AppliedWithFailedDriftDetection"

	// Of ConditionApplied when it is false.
	ReasonDecodingErred     = "DecodingErred"
	ReasonFoundGenerateName = "FoundGenerateName"
	ReasonDuplicated        = "Duplicated"
	// ReasonReserved is of a manifest in a namespace that is kept for fleetgate, or of a
	// kind of Secret that is never brought to a member.
	ReasonReserved                       = "Reserved"
	ReasonFailedToFindObjInMemberCluster = "FailedToFindObjInMemberCluster"
	ReasonFailedToTakeOver               = "FailedToTakeOver"
	ReasonNotTakenOver                   = "NotTakenOver"
	ReasonFailedToRunDriftDetection      = "FailedToRunDriftDetection"
	ReasonFoundDrifts                    = "FoundDrifts"
	ReasonFoundDriftsInDegradedMode      = "FoundDriftsInDegradedMode"
	ReasonManifestApplyFailed            = "ManifestApplyFailed"
	// ReasonNotAsWritten is of a manifest that the member took, and of which it does not have
	// all fields as they were written.
	ReasonNotAsWritten = "NotAsWritten"

	// Of ConditionDiffReported.
	ReasonNoDiffFound             = "NoDiffFound"
	ReasonFoundDiff               = "FoundDiff"
	ReasonFoundDiffInDegradedMode = "FoundDiffInDegradedMode"
	ReasonFailedToReportDiff      = "FailedToReportDiff"

	// Of ConditionAvailable.
	ReasonAvailable               = "Available"
	ReasonManifestNotAvailableYet = "ManifestNotAvailableYet"
	ReasonNotTrackable            = "NotTrackable"
	ReasonFailed                  = "Failed"
	ReasonSkipped                 = "Skipped"
	// ReasonCompleted is of an object that ran to completion, as a Job does. It is not run again.
	ReasonCompleted = "Completed"
	// ReasonCompletionUnknown is of one that expires after it ended, and is gone without the agent
	// having seen it end. It is not run again either.
	ReasonCompletionUnknown = "CompletionUnknown"
)

// WorkName names the Work of a placement's master snapshot. The namespace is
// empty for a cluster-scoped placement.
func WorkName(namespace, placement string) string {
	return workNameBase(namespace, placement) + "-work"
}

// SubWorkName names the Work of the snapshot of the group with a subindex.
func SubWorkName(namespace, placement string, subindex int) string {
	return workNameBase(namespace, placement) + "-" + strconv.Itoa(subindex)
}

// EnvelopeWorkName names the Work of an envelope, which may be in the same
// group as others of its name and is told from them by a hash.
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

// Work is what a member shall apply, in the member's namespace on the hub.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.status!="True")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Why-Not",type=string,priority=1,JSONPath=`.status.conditions[?(@.status!="True")].message`
type Work struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what to apply, and how.
	//
	// +optional
	Spec WorkSpec `json:"spec,omitzero"`

	// status is what the member says became of it.
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

// WorkSpec is what to apply on a member, and how.
type WorkSpec struct {
	// workload has the objects.
	//
	// +optional
	Workload WorkloadTemplate `json:"workload,omitzero"`

	// applyStrategy says how they are applied. Empty means all defaults.
	//
	// +optional
	ApplyStrategy *ApplyStrategy `json:"applyStrategy,omitempty"`

	// reportBackStrategy says whether their status is brought back. Empty means
	// no.
	//
	// +optional
	ReportBackStrategy *ReportBackStrategy `json:"reportBackStrategy,omitempty"`
}

// WorkloadTemplate has the objects of a Work.
type WorkloadTemplate struct {
	// manifests are whole objects. None is fine: then what was applied before
	// is removed.
	//
	// +optional
	Manifests []Manifest `json:"manifests,omitempty"`
}

// WorkStatus is what a member says became of a Work.
type WorkStatus struct {
	// conditions of the Work as a whole. The API server refuses null here: none
	// is an empty list, not nil.
	//
	// +required
	Conditions []metav1.Condition `json:"conditions"`

	// manifestConditions has an entry per object, also for one that was taken
	// out of the Work and is not gone yet.
	//
	// +optional
	ManifestConditions []ManifestCondition `json:"manifestConditions,omitempty"`
}

// WorkResourceIdentifier names an object of a Work.
type WorkResourceIdentifier struct {
	// ordinal is the place of the object in the Work's manifests, from 0.
	//
	// +required
	Ordinal int `json:"ordinal"`

	// group of the object, empty for the core group.
	//
	// +optional
	Group string `json:"group,omitempty"`

	// version of the object. Empty when the manifest cannot be decoded.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// kind of the object. Empty when the manifest cannot be decoded.
	//
	// +optional
	Kind string `json:"kind,omitempty"`

	// resource is the plural name. Empty when the member does not know the kind.
	//
	// +optional
	Resource string `json:"resource,omitempty"`

	// namespace of the object, empty for a cluster-scoped one.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name of the object.
	//
	// +optional
	Name string `json:"name,omitempty"`
}

// ManifestCondition is what became of one object of a Work.
type ManifestCondition struct {
	// identifier is the object.
	//
	// +required
	Identifier WorkResourceIdentifier `json:"identifier"`

	// conditions of the object: Applied, Available, DiffReported.
	//
	// +required
	Conditions []metav1.Condition `json:"conditions"`

	// driftDetails says how it was changed on the member. Empty means not.
	//
	// +optional
	DriftDetails *DriftDetails `json:"driftDetails,omitempty"`

	// diffDetails says how it differs from the hub's, without having been
	// written. Empty means not.
	//
	// +optional
	DiffDetails *DiffDetails `json:"diffDetails,omitempty"`

	// backReportedStatus is its status on the member, if asked for.
	//
	// +optional
	BackReportedStatus *BackReportedStatus `json:"backReportedStatus,omitempty"`
}

// DriftDetails says how an applied object was changed on the member.
type DriftDetails struct {
	// observationTime is when it was last looked at.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// observedInMemberClusterGeneration is the generation that was looked at.
	//
	// +required
	ObservedInMemberClusterGeneration int64 `json:"observedInMemberClusterGeneration"`

	// firstDriftedObservedTime is when the drift was first seen.
	//
	// +required
	FirstDriftedObservedTime metav1.Time `json:"firstDriftedObservedTime"`

	// observedDrifts are the fields that differ.
	//
	// +optional
	ObservedDrifts []PatchDetail `json:"observedDrifts,omitempty"`
}

// DiffDetails says how an object on the member differs from the hub's.
type DiffDetails struct {
	// observationTime is when it was last looked at.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`

	// observedInMemberClusterGeneration is the generation that was looked at.
	// Empty means that there is no such object.
	//
	// +optional
	ObservedInMemberClusterGeneration *int64 `json:"observedInMemberClusterGeneration,omitempty"`

	// firstDiffedObservedTime is when the difference was first seen.
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
	// observedStatus has apiVersion, kind, metadata.name and status of the
	// object, and nothing else.
	//
	// +optional
	ObservedStatus Manifest `json:"observedStatus,omitzero"`

	// observationTime is when it was read.
	//
	// +required
	ObservationTime metav1.Time `json:"observationTime"`
}
