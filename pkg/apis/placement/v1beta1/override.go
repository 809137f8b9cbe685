// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverrideCleanupFinalizer holds an override until its snapshots are gone.
const OverrideCleanupFinalizer = KeyPrefix + "override-cleanup"

// Variables that stand for something of the member in the values of a JSON
// patch.
const (
	// MemberNameVariable stands for the member's name.
	MemberNameVariable = "${MEMBER-CLUSTER-NAME}"
	// MemberLabelVariablePrefix, followed by a label's key and a closing brace,
	// stands for the value of the member's label; a member without it gets no
	// resources until the override is corrected.
	MemberLabelVariablePrefix = "${MEMBER-CLUSTER-LABEL-KEY-"
	// MemberPropertyVariablePrefix, the same with a property's name, stands for its value:
	// such as the networks of its Pods, which Cluster API knows.
	MemberPropertyVariablePrefix = "${MEMBER-CLUSTER-PROPERTY-"
	// MemberAnnotationVariablePrefix, the same with an annotation's key, stands for the
	// value of the MemberCluster's annotation: what is no label, such as a proxy's URL.
	MemberAnnotationVariablePrefix = "${MEMBER-CLUSTER-ANNOTATION-KEY-"
)

// ClusterResourceOverride changes what some members get of cluster-scoped
// resources; of a namespace, it changes all objects in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!(has(self.spec.placement) && has(self.spec.placement.scope) && self.spec.placement.scope == 'Namespaced')",message="clusterResourceOverride placement reference cannot be Namespaced scope"
type ClusterResourceOverride struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what changes where.
	//
	// +required
	Spec ClusterResourceOverrideSpec `json:"spec"`
}

// ClusterResourceOverrideList is a list of ClusterResourceOverrides.
//
// +kubebuilder:object:root=true
type ClusterResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterResourceOverride `json:"items"`
}

// ClusterResourceOverrideSpec says what changes where.
//
// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="The placement field is immutable"
type ClusterResourceOverrideSpec struct {
	// placement limits the override to one placement. Empty means all; it
	// cannot be changed.
	//
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`

	// clusterResourceSelectors choose the resources, by name only; 1 to 20.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`

	// policy says what changes on which members.
	//
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// ResourceOverride changes what some members get of resources of its
// namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ResourceOverride struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what changes where.
	//
	// +required
	Spec ResourceOverrideSpec `json:"spec"`
}

// ResourceOverrideList is a list of ResourceOverrides.
//
// +kubebuilder:object:root=true
type ResourceOverrideList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceOverride `json:"items"`
}

// ResourceOverrideSpec says what changes where.
//
// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="The placement field is immutable"
type ResourceOverrideSpec struct {
	// placement limits the override to one placement. Empty means all; it
	// cannot be changed.
	//
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`

	// resourceSelectors choose the resources; 1 to 20.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// policy says what changes on which members.
	//
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// ResourceSelector names one object of a namespace.
type ResourceSelector struct {
	// group of the object, empty for the core group.
	//
	// +required
	Group string `json:"group"`

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
}

// PlacementRef names a placement.
type PlacementRef struct {
	// name of the placement.
	//
	// +required
	Name string `json:"name"`

	// scope is Cluster for a ClusterResourcePlacement and Namespaced for a
	// ResourcePlacement of the override's namespace. Default Cluster.
	//
	// +optional
	// +kubebuilder:default=Cluster
	// +kubebuilder:validation:Enum=Cluster;Namespaced
	Scope apiextensionsv1.ResourceScope `json:"scope,omitempty"`
}

// OverridePolicy is a list of rules.
type OverridePolicy struct {
	// overrideRules are applied in order; 1 to 20.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	OverrideRules []OverrideRule `json:"overrideRules"`
}

// OverrideRule changes the resources on some members.
type OverrideRule struct {
	// clusterSelector chooses the members, by labels only. Empty means none; a
	// selector without terms means all.
	//
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`

	// overrideType is JSONPatch or Delete. Default JSONPatch.
	//
	// +optional
	// +kubebuilder:default=JSONPatch
	OverrideType OverrideType `json:"overrideType,omitempty"`

	// jsonPatchOverrides are applied in order; 1 to 20, with type JSONPatch
	// only.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// OverrideType is what a rule does.
//
// +kubebuilder:validation:Enum=JSONPatch;Delete
type OverrideType string

const (
	// JSONPatchOverrideType changes fields.
	JSONPatchOverrideType OverrideType = "JSONPatch"
	// DeleteOverrideType keeps the resource off the member.
	DeleteOverrideType OverrideType = "Delete"
)

// JSONPatchOverride is one operation of a JSON patch (RFC 6902).
type JSONPatchOverride struct {
	// op is add, remove or replace.
	//
	// +required
	Operator JSONPatchOverrideOperator `json:"op"`

	// path is the JSON pointer (RFC 6901) of the field. Not allowed are kind,
	// apiVersion, status, and of metadata all but labels and annotations.
	//
	// +required
	Path string `json:"path"`

	// value is any JSON; must be absent with op remove. In its texts,
	// ${MEMBER-CLUSTER-NAME}, ${MEMBER-CLUSTER-LABEL-KEY-<key>},
	// ${MEMBER-CLUSTER-PROPERTY-<name>} and ${MEMBER-CLUSTER-ANNOTATION-KEY-<key>}
	// are replaced.
	//
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitzero"`
}

// JSONPatchOverrideOperator is an operation of a JSON patch.
//
// +kubebuilder:validation:Enum=add;remove;replace
type JSONPatchOverrideOperator string

const (
	// JSONPatchAdd adds a field or an element.
	JSONPatchAdd JSONPatchOverrideOperator = "add"
	// JSONPatchRemove removes one.
	JSONPatchRemove JSONPatchOverrideOperator = "remove"
	// JSONPatchReplace replaces one.
	JSONPatchReplace JSONPatchOverrideOperator = "replace"
)
