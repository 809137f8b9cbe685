// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// Resource is the plural name of FleetView in paths and rules.
	Resource = "fleetviews"
	// AllMembers is the view that is always there, of every member. No FleetView may have
	// this name.
	AllMembers = "all"
	// LabelMember is on every object of an answer: the name of the member that has it. It
	// is put there by the gateway, whatever the member's object says, and stored nowhere.
	LabelMember = "view.fleetgate.io/member"
	// AnnotationSilent is on bookmarks of a watch: the members of which nothing could be read
	// yet, separated by commas, some of them if there are many.
	AnnotationSilent = "view.fleetgate.io/silent"
)

// Names says under which names a view shows objects.
// +kubebuilder:validation:Enum=Plain;Qualified
type Names string

const (
	// NamesPlain shows objects under their own names, which several members can have.
	NamesPlain Names = "Plain"
	// NamesQualified shows an object as <member>.<name>, so that clients which keep objects
	// by namespace and name keep all of them.
	NamesQualified Names = "Qualified"
)

// FleetView is a name for members that are read as if they were one cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:JSONPath=`.spec.names`,name="Names",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'all'",message="the view all is there without an object, and is of every member"
type FleetView struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is which members the view shows, and how.
	// +optional
	Spec FleetViewSpec `json:"spec,omitzero"`
}

// FleetViewSpec is which members a view shows, and how.
type FleetViewSpec struct {
	// memberSelector chooses MemberClusters by their labels. Empty chooses all.
	// +optional
	MemberSelector *metav1.LabelSelector `json:"memberSelector,omitempty"`

	// names says under which names objects are shown: Plain, as they are, or Qualified,
	// <member>.<name>, for clients that keep objects by namespace and name. Default Plain.
	// +kubebuilder:default=Plain
	// +optional
	Names Names `json:"names,omitempty"`
}

// FleetViewList is a list of FleetViews.
//
// +kubebuilder:object:root=true
type FleetViewList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the views.
	Items []FleetView `json:"items"`
}
