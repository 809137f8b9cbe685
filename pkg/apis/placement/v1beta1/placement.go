// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// PlacementCleanupFinalizer keeps a deleted placement of either scope until its snapshots are
	// gone.
	PlacementCleanupFinalizer = KeyPrefix + "crp-cleanup"
	// SchedulerCleanupFinalizer keeps a deleted placement of either scope until the scheduler has
	// released its bindings.
	SchedulerCleanupFinalizer = KeyPrefix + "scheduler-cleanup"

	// ParentPlacementLabel is on every snapshot, binding and Work. Its value is the name of their
	// placement, of either scope. The namespace of a ResourcePlacement is that of the labeled
	// object; for a Work, see ParentPlacementNamespaceLabel.
	ParentPlacementLabel = KeyPrefix + "parent-CRP"
	// IsLatestSnapshotLabel is on every policy, resource and override snapshot. It is "true" on the
	// newest of its parent and "false" on all others.
	IsLatestSnapshotLabel = KeyPrefix + "is-latest-snapshot"
)

// PlacementNameMaxLength limits the name of a placement, in characters, because the name is used as
// a label value.
const PlacementNameMaxLength = 63

// PausedAnnotation with the value "true" on a placement or a MemberCluster pauses it: nothing
// placed changes on any member of the placement, or on the member, until the annotation is removed.
const PausedAnnotation = "fleetgate.io/paused"

// Paused reports whether a placement or a member is paused.
func Paused(object metav1.Object) bool { return object.GetAnnotations()[PausedAnnotation] == "true" }

// PlacementObject is a placement of either scope.
//
// +kubebuilder:object:generate=false
type PlacementObject interface {
	metav1.Object
	runtime.Object
	// GetSpec returns the spec itself, not a copy.
	GetSpec() *PlacementSpec
	// GetStatus returns the status itself, not a copy.
	GetStatus() *PlacementStatus
	// ConditionType returns the type of the placement's condition that summarizes the members'
	// conditions of type perCluster.
	ConditionType(perCluster string) string
}

var (
	_ PlacementObject = (*ClusterResourcePlacement)(nil)
	_ PlacementObject = (*ResourcePlacement)(nil)
)

// ClusterResourcePlacement places cluster-scoped resources, and namespaces with their contents, on
// members.
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
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ClusterResourcePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects resources and members, and sets how changes roll out.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.statusReportingScope != 'NamespaceAccessible' || self.resourceSelectors.filter(s, s.kind == 'Namespace').size() == 1",message="when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is required"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.statusReportingScope) || oldSelf.statusReportingScope == self.statusReportingScope",message="statusReportingScope is immutable"
	Spec PlacementSpec `json:"spec"`

	// status is the observed state. The hub writes it.
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

// ResourcePlacement places resources of its own namespace on members.
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
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ResourcePlacement struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects resources and members, and sets how changes roll out.
	//
	// +required
	Spec PlacementSpec `json:"spec"`

	// status is the observed state. The hub writes it.
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

// PlacementSpec selects resources and members, and sets how changes roll out.
//
// +kubebuilder:validation:XValidation:rule="has(self.policy) || !has(oldSelf.policy)",message="policy cannot be removed once set"
// +kubebuilder:validation:XValidation:rule="self.resourceSelectors.filter(s, size(s.group) == 0 && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors').size() < 2",message="only one namespace selector with NamespaceWithResourceSelectors mode is allowed"
// +kubebuilder:validation:XValidation:rule="self.resourceSelectors.all(s, size(s.group) > 0 || s.version != 'v1' || s.kind != 'Namespace' || !has(s.selectionScope) || s.selectionScope != 'NamespaceWithResourceSelectors' || (has(s.name) && size(s.name) > 0 && !has(s.labelSelector)))",message="namespace selector with NamespaceWithResourceSelectors mode must select by name (not by label)"
// +kubebuilder:validation:XValidation:rule="!self.resourceSelectors.exists(s, size(s.group) == 0 && s.version == 'v1' && s.kind == 'Namespace' && has(s.selectionScope) && s.selectionScope == 'NamespaceWithResourceSelectors') || self.resourceSelectors.filter(s, size(s.group) == 0 && s.version == 'v1' && s.kind == 'Namespace').size() < 2",message="when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed (cannot mix with other namespace selectors)"
type PlacementSpec struct {
	// resourceSelectors select the resources: objects that match any of them. 1 to 100.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(s, !has(s.labelSelector) || !has(s.name) || size(s.name) == 0)",message="name and labelSelector are mutually exclusive in a resource selector"
	ResourceSelectors []ResourceSelectorTerm `json:"resourceSelectors"`

	// policy selects the members. If unset, all members are selected. It can be added later but not
	// removed.
	//
	// +optional
	Policy *PlacementPolicy `json:"policy,omitempty"`

	// strategy sets how a change reaches the members. If unset, RollingUpdate with its defaults.
	//
	// +optional
	Strategy RolloutStrategy `json:"strategy,omitzero"`

	// revisionHistoryLimit is how many policy snapshots and groups of resource snapshots are kept,
	// including the newest: 1 to 1000, default 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// statusReportingScope sets who can read the status of a ClusterResourcePlacement. Default
	// ClusterScopeOnly. Immutable. A ResourcePlacement ignores it.
	//
	// +optional
	// +kubebuilder:default=ClusterScopeOnly
	StatusReportingScope StatusReportingScope `json:"statusReportingScope,omitempty"`
}

// StatusReportingScope is where a placement's status is written.
//
// +kubebuilder:validation:Enum=ClusterScopeOnly;NamespaceAccessible
type StatusReportingScope string

const (
	// ClusterScopeOnly writes the status to the placement only.
	ClusterScopeOnly StatusReportingScope = "ClusterScopeOnly"
	// NamespaceAccessible also copies it to a ClusterResourcePlacementStatus in the one namespace
	// that the placement selects.
	NamespaceAccessible StatusReportingScope = "NamespaceAccessible"
)

// ResourceSelectorTerm selects objects of one kind: all, one by name, or by labels.
type ResourceSelectorTerm struct {
	// group of the objects; empty for the core group.
	//
	// +required
	Group string `json:"group"`

	// version of the objects.
	//
	// +required
	Version string `json:"version"`

	// kind of the objects. For Namespace, see selectionScope.
	//
	// +required
	Kind string `json:"kind"`

	// name of one object. If unset, selects by labelSelector, or all.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// labelSelector selects by labels. If unset, selects by name, or all. Excludes name.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// selectionScope sets, for kind Namespace, how much of its contents is placed. Default
	// NamespaceWithResources.
	//
	// +optional
	// +kubebuilder:default=NamespaceWithResources
	SelectionScope SelectionScope `json:"selectionScope,omitempty"`
}

// SelectionScope is how much of a selected namespace is placed.
//
// +kubebuilder:validation:Enum=NamespaceOnly;NamespaceWithResources;NamespaceWithResourceSelectors
type SelectionScope string

const (
	// NamespaceOnly places the Namespace object alone.
	NamespaceOnly SelectionScope = "NamespaceOnly"
	// NamespaceWithResources places the namespace and all its contents.
	NamespaceWithResources SelectionScope = "NamespaceWithResources"
	// NamespaceWithResourceSelectors places the namespace and those of its contents that other
	// selectors of the placement match.
	NamespaceWithResourceSelectors SelectionScope = "NamespaceWithResourceSelectors"
)
