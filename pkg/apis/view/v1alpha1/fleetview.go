// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// Resource is the plural name of FleetView in paths and rules.
	Resource = "fleetviews"
	// AllMembers is the view of all members, which always exists. No FleetView can have this name.
	AllMembers = "all"
	// LabelMember is on every object of a response. Its value is the name of the member that has
	// the object. The gateway sets it, over any value in the object, and does not store it.
	LabelMember = "view.fleetgate.io/member"
	// AnnotationSilent is on bookmarks of a watch. Its value is the members that could not be read
	// yet, separated by commas; only some if there are many.
	AnnotationSilent = "view.fleetgate.io/silent"
)

// Names is how a view names objects.
// +kubebuilder:validation:Enum=Plain;Qualified
type Names string

const (
	// NamesPlain shows objects under their own names. Objects of several members can have the same
	// name.
	NamesPlain Names = "Plain"
	// NamesQualified shows an object as <member>.<name>, so that clients that store objects by
	// namespace and name keep all of them.
	NamesQualified Names = "Qualified"
)

// FleetView selects members that clients read like one cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:JSONPath=`.spec.names`,name="Names",type=string
// +kubebuilder:printcolumn:JSONPath=`.metadata.creationTimestamp`,name="Age",type=date
// +kubebuilder:validation:XValidation:rule="self.metadata.name != 'all'",message="the view all is there without an object, and is of every member"
type FleetView struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the members and sets how objects are named.
	// +optional
	Spec FleetViewSpec `json:"spec,omitzero"`
}

// FleetViewSpec selects members and sets how objects are named.
type FleetViewSpec struct {
	// memberSelector matches the labels of MemberClusters. If unset, all members.
	// +optional
	MemberSelector *metav1.LabelSelector `json:"memberSelector,omitempty"`

	// names is how objects are named: Plain, or Qualified (<member>.<name>) for clients that store
	// objects by namespace and name. Default Plain.
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

	Items []FleetView `json:"items"`
}
