// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// PlacementCleanupFinalizer holds a placement of either scope until its
	// snapshots are gone.
	PlacementCleanupFinalizer = KeyPrefix + "crp-cleanup"
	// SchedulerCleanupFinalizer holds a placement of either scope until the
	// scheduler has let go of its bindings.
	SchedulerCleanupFinalizer = KeyPrefix + "scheduler-cleanup"

	// ParentPlacementLabel is on every snapshot, binding and Work: the name of
	// the placement they come from, of either scope. For a namespaced one the
	// namespace is the object's own, and on a Work that of
	// ParentPlacementNamespaceLabel.
	ParentPlacementLabel = KeyPrefix + "parent-CRP"
	// IsLatestSnapshotLabel is on every policy, resource and override
	// snapshot: "true" on the newest of its parent, "false" on the others.
	IsLatestSnapshotLabel = KeyPrefix + "is-latest-snapshot"
)

// PlacementNameMaxLength is the limit of a placement's name in characters: it
// becomes a label's value.
const PlacementNameMaxLength = 63

// PausedAnnotation on a placement or a MemberCluster, with the value "true", is a brake:
// nothing that is placed changes on any member of the placement, or on the member, until
// it is taken off again.
const PausedAnnotation = "fleetgate.io/paused"

// Paused reports whether a placement or a member is paused.
func Paused(object metav1.Object) bool { return object.GetAnnotations()[PausedAnnotation] == "true" }

// PlacementObject is a placement of either scope, as controllers see it.
//
// +kubebuilder:object:generate=false
type PlacementObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *PlacementSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *PlacementStatus
	// ConditionType returns the type of the condition of the whole placement
	// that sums up the members' conditions of type perCluster.
	ConditionType(perCluster string) string
}

var (
	_ PlacementObject = (*ClusterResourcePlacement)(nil)
	_ PlacementObject = (*ResourcePlacement)(nil)
)

// ClusterResourcePlacement brings cluster-scoped resources, and namespaces
// with what is in them, to members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=crp,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.policy.placementType`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Work-Synchronized",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementWorkSynchronized")].status`
// +kubebuilder:printcolumn:name="Work-Synchronized-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementWorkSynchronized")].observedGeneration`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementApplied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Available-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ClusterResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Why-Not",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what goes to which members, and how changes roll out.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.statusReportingScope != 'NamespaceAccessible' || self.resourceSelectors.filter(s, s.kind == 'Namespace').size() == 1",message="when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.statusReportingScope) || oldSelf.statusReportingScope == self.statusReportingScope",message="statusReportingScope is immutable"
	Spec PlacementSpec `json:"spec"`

	// status is what became of it.
	//
	// +optional
	Status PlacementStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (p *ClusterResourcePlacement) GetSpec() *PlacementSpec { return &p.Spec }

// GetStatus returns the status itself, not a copy.
func (p *ClusterResourcePlacement) GetStatus() *PlacementStatus { return &p.Status }

// ConditionType prefixes a per-cluster condition type with the kind.
func (p *ClusterResourcePlacement) ConditionType(perCluster string) string {
	return "ClusterResourcePlacement" + perCluster
}

// ClusterResourcePlacementList is a list of ClusterResourcePlacements.
//
// +kubebuilder:object:root=true
type ClusterResourcePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourcePlacement `json:"items"`
}

// ResourcePlacement brings resources of its own namespace to members.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rp,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:printcolumn:name="Gen",type=string,JSONPath=`.metadata.generation`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.policy.placementType`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].status`
// +kubebuilder:printcolumn:name="Scheduled-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementScheduled")].observedGeneration`
// +kubebuilder:printcolumn:name="Work-Synchronized",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementWorkSynchronized")].status`
// +kubebuilder:printcolumn:name="Work-Synchronized-Gen",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementWorkSynchronized")].observedGeneration`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementApplied")].status`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.available`
// +kubebuilder:printcolumn:name="Available-Gen",type=string,JSONPath=`.status.conditions[?(@.type=="ResourcePlacementAvailable")].observedGeneration`
// +kubebuilder:printcolumn:name="Members",type=string,JSONPath=`.status.members`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Why-Not",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourcePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what goes to which members, and how changes roll out.
	//
	// +required
	Spec PlacementSpec `json:"spec"`

	// status is what became of it.
	//
	// +optional
	Status PlacementStatus `json:"status,omitzero"`
}

// GetSpec returns the spec itself, not a copy.
func (p *ResourcePlacement) GetSpec() *PlacementSpec { return &p.Spec }

// GetStatus returns the status itself, not a copy.
func (p *ResourcePlacement) GetStatus() *PlacementStatus { return &p.Status }

// ConditionType prefixes a per-cluster condition type with the kind.
func (p *ResourcePlacement) ConditionType(perCluster string) string {
	return "ResourcePlacement" + perCluster
}

// ResourcePlacementList is a list of ResourcePlacements.
//
// +kubebuilder:object:root=true
type ResourcePlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourcePlacement `json:"items"`
}

// PlacementSpec says what goes to which members, and how changes roll out.
//
// +kubebuilder:validation:XValidation:rule="has(self.policy) || !has(oldSelf.policy)",message="policy cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="self.resourceSelectors.filter(s, size(s.group) == 0 && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors').size() < 2",message="only one namespace selector with NamespaceWithResourceSelectors mode is allowed"
// +kubebuilder:validation:XValidation:rule="self.resourceSelectors.all(s, size(s.group) > 0 || s.version != 'v1' || s.kind != 'Namespace' || !has(s.selectionScope) || s.selectionScope != 'NamespaceWithResourceSelectors' || (has(s.name) && size(s.name) > 0 && !has(s.labelSelector)))",message="namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"
// +kubebuilder:validation:XValidation:rule="!self.resourceSelectors.exists(s, size(s.group) == 0 && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors') || self.resourceSelectors.filter(s, size(s.group) == 0 && s.version == 'v1' && s.kind == 'Namespace').size() < 2",message="when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"
type PlacementSpec struct {
	// resourceSelectors choose the resources. An object chosen by any of them
	// is placed; 1 to 100.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(s, !has(s.labelSelector) || !has(s.name) || size(s.name) == 0)",message="name and labelSelector are mutually exclusive in a resource selector"
	ResourceSelectors []ResourceSelectorTerm `json:"resourceSelectors"`

	// policy chooses the members. Empty means every member, and can be set
	// later, but not taken away again.
	//
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// strategy says how a change reaches the chosen members. Empty means a
	// rolling update with its defaults.
	//
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitzero"`

	// revisionHistoryLimit is how many policy snapshots and groups of resource
	// snapshots are kept, the newest included: 1 to 1000, default 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// statusReportingScope says who can read what became of a
	// ClusterResourcePlacement. Default ClusterScopeOnly; it cannot be changed.
	// A ResourcePlacement ignores it.
	//
	// +optional
	// +kubebuilder:default=ClusterScopeOnly
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// StatusReportingScope says where a placement's status is written.
//
// +kubebuilder:validation:Enum=ClusterScopeOnly;NamespaceAccessible
type StatusReportingScope string

const (
	// ClusterScopeOnly writes the status into the placement only.
	ClusterScopeOnly StatusReportingScope = "ClusterScopeOnly"
	// NamespaceAccessible also copies it into a ClusterResourcePlacementStatus
	// in the one namespace that the placement selects.
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// ResourceSelectorTerm chooses objects of one kind: all of them, one by name,
// or those with certain labels.
type ResourceSelectorTerm struct {
	// group of the objects, empty for the core group.
	//
	// +required
	Group string `json:"group"`

	// version of the objects.
	//
	// +required
	Version string `json:"version"`

	// kind of the objects. A Namespace stands for what selectionScope says.
	//
	// +required
	Kind string `json:"kind"`

	// name of one object. Empty means all, or those of labelSelector.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// labelSelector chooses by labels. Empty means all, or the one of name; not
	// together with name.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// selectionScope says, for kind Namespace, how much of what is in the
	// namespace comes along. Default NamespaceWithResources.
	//
	// +optional
	// +kubebuilder:default=NamespaceWithResources
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// SelectionScope says how much of a selected namespace is placed.
//
// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
type SelectionScope string

const (
	// NamespaceOnly places the Namespace object alone.
	NamespaceOnly SelectionScope = "NamespaceOnly"
	// NamespaceWithResources places the namespace and all that is in it.
	NamespaceWithResources SelectionScope = "NamespaceWithResources"
	// NamespaceWithResourceSelectors places the namespace and, of what is in
	// it, what the placement's other selectors choose.
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)
