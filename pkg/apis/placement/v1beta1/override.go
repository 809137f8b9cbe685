// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OverrideCleanupFinalizer keeps a deleted override until its snapshots are gone.
const OverrideCleanupFinalizer = KeyPrefix + "override-cleanup"

// Variables in the values of a JSON patch. Each is replaced with a value of the member.
const (
	// MemberNameVariable is replaced with the name of the member.
	MemberNameVariable = "${MEMBER-CLUSTER-NAME}"
	// MemberLabelVariablePrefix, followed by a label key and a closing brace, is replaced with the
	// value of that label. A member without the label gets no resources until the override is
	// corrected.
	MemberLabelVariablePrefix = "${MEMBER-CLUSTER-LABEL-KEY-"
	// MemberPropertyVariablePrefix, followed by a property name and a closing brace, is replaced
	// with the value of that property, such as the Pod networks that Cluster API reports.
	MemberPropertyVariablePrefix = "${MEMBER-CLUSTER-PROPERTY-"
	// MemberAnnotationVariablePrefix, followed by an annotation key and a closing brace, is
	// replaced with the value of that annotation of the MemberCluster. Use it for values that are
	// not valid in a label, such as the URL of a proxy.
	MemberAnnotationVariablePrefix = "${MEMBER-CLUSTER-ANNOTATION-KEY-"
)

// ClusterResourceOverride changes cluster-scoped resources for some members. For a Namespace it
// changes all objects in it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
// +kubebuilder:validation:XValidation:rule="!(has(self.spec.placement) && has(self.spec.placement.scope) && self.spec.placement.scope == 'Namespaced')",message="clusterResourceOverride placement reference cannot be Namespaced scope"
type ClusterResourceOverride struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects resources and changes.
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

// ClusterResourceOverrideSpec selects resources and changes.
//
// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="The placement field is immutable"
type ClusterResourceOverrideSpec struct {
	// placement limits the override to one placement. If unset, it applies to all. Immutable.
	//
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`

	// clusterResourceSelectors select the resources, by name only; 1 to 20.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ClusterResourceSelectors []ResourceSelectorTerm `json:"clusterResourceSelectors"`

	// policy sets the changes per member.
	//
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// ResourceOverride changes resources of its namespace for some members.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={fleet,fleet-placement}
// +kubebuilder:storageversion
type ResourceOverride struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects resources and changes.
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

// ResourceOverrideSpec selects resources and changes.
//
// +kubebuilder:validation:XValidation:rule="has(self.placement) == has(oldSelf.placement) && (!has(self.placement) || self.placement == oldSelf.placement)",message="The placement field is immutable"
type ResourceOverrideSpec struct {
	// placement limits the override to one placement. If unset, it applies to all. Immutable.
	//
	// +optional
	Placement *PlacementRef `json:"placement,omitempty"`

	// resourceSelectors select the resources; 1 to 20.
	//
	// +required
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	ResourceSelectors []ResourceSelector `json:"resourceSelectors"`

	// policy sets the changes per member.
	//
	// +required
	Policy *OverridePolicy `json:"policy"`
}

// ResourceSelector identifies one namespaced object.
type ResourceSelector struct {
	// group of the object; empty for the core group.
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

// PlacementRef identifies a placement.
type PlacementRef struct {
	// name of the placement.
	//
	// +required
	Name string `json:"name"`

	// scope is Cluster for a ClusterResourcePlacement, and Namespaced for a ResourcePlacement in
	// the override's namespace. Default Cluster.
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
	// clusterSelector selects members, by labels only. If unset, it selects none; a selector
	// without terms selects all.
	//
	// +optional
	ClusterSelector *ClusterSelector `json:"clusterSelector,omitempty"`

	// overrideType is JSONPatch or Delete. Default JSONPatch.
	//
	// +optional
	// +kubebuilder:default=JSONPatch
	OverrideType OverrideType `json:"overrideType,omitempty"`

	// jsonPatchOverrides are applied in order; 1 to 20, for type JSONPatch only.
	//
	// +optional
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	JSONPatchOverrides []JSONPatchOverride `json:"jsonPatchOverrides,omitempty"`
}

// OverrideType is the effect of a rule.
//
// +kubebuilder:validation:Enum=JSONPatch;Delete
type OverrideType string

const (
	// JSONPatchOverrideType changes fields.
	JSONPatchOverrideType OverrideType = "JSONPatch"
	// DeleteOverrideType omits the resource on the member.
	DeleteOverrideType OverrideType = "Delete"
)

// JSONPatchOverride is one operation of a JSON patch (RFC 6902).
type JSONPatchOverride struct {
	// op is add, remove or replace.
	//
	// +required
	Operator JSONPatchOverrideOperator `json:"op"`

	// path is the JSON pointer (RFC 6901) of the field. Forbidden are kind, apiVersion, status, and
	// all of metadata except labels and annotations.
	//
	// +required
	Path string `json:"path"`

	// value is any JSON; must be unset with op remove. In its strings, ${MEMBER-CLUSTER-NAME},
	// ${MEMBER-CLUSTER-LABEL-KEY-<key>}, ${MEMBER-CLUSTER-PROPERTY-<name>} and
	// ${MEMBER-CLUSTER-ANNOTATION-KEY-<key>} are replaced.
	//
	// +optional
	Value apiextensionsv1.JSON `json:"value,omitzero"`
}

// JSONPatchOverrideOperator is an operation of a JSON patch.
//
// +kubebuilder:validation:Enum=add;remove;replace
type JSONPatchOverrideOperator string

const (
	// JSONPatchAdd adds a field or list item.
	JSONPatchAdd JSONPatchOverrideOperator = "add"
	// JSONPatchRemove removes a field or list item.
	JSONPatchRemove JSONPatchOverrideOperator = "remove"
	// JSONPatchReplace replaces a field or list item.
	JSONPatchReplace JSONPatchOverrideOperator = "replace"
)
