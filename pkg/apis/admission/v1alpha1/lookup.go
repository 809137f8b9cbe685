// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MissingPolicy is what happens if a lookup finds nothing.
// +kubebuilder:validation:Enum=Skip;Deny
type MissingPolicy string

const (
	// MissingSkip skips the expressions that read the lookup.
	MissingSkip MissingPolicy = "Skip"
	// MissingDeny treats them as not met.
	MissingDeny MissingPolicy = "Deny"
)

// Lookup is other objects that expressions can read, as params.lookups.<name>: the object for get,
// a list for list. Later lookups can read earlier ones. The author of the policy must have the
// right to read them. Of Secrets, only keys are shown, not values.
// +kubebuilder:validation:XValidation:rule="has(self.get) != has(self.list)",message="a lookup needs either get or list"
type Lookup struct {
	// name in expressions.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z][a-zA-Z0-9_]*$`
	// +required
	Name string `json:"name"`

	// get identifies one object. Excludes list.
	// +optional
	Get *ObjectGet `json:"get,omitempty"`

	// list selects objects, at most 500. Excludes get.
	// +optional
	List *ObjectList `json:"list,omitempty"`

	// onMissing is what happens if get finds nothing: Skip or Deny. Default Skip.
	// +kubebuilder:default=Skip
	// +optional
	OnMissing MissingPolicy `json:"onMissing,omitempty"`
}

// ObjectList selects objects of one kind on the hub.
type ObjectList struct {
	// apiVersion of the objects; with version "*", the version that the hub prefers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`

	// kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// allNamespaces searches every namespace. Default false: only that of the object under
	// admission.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`

	// sameLabel selects objects with the same value of this label as the object under admission;
	// none if that has no such label. If unset, labels are ignored.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SameLabel string `json:"sameLabel,omitempty"`
}

// ObjectGet identifies one object on the hub.
type ObjectGet struct {
	// apiVersion of the object; with version "*", as in cluster.x-k8s.io/*, the version that the
	// hub prefers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +required
	APIVersion string `json:"apiVersion"`

	// kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// nameFrom is a CEL expression for the name of the object. If its result is empty, the lookup
	// is skipped and onMissing is ignored.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	NameFrom string `json:"nameFrom"`

	// namespaceFrom is a CEL expression for the namespace of the object. If unset, that of the
	// object under admission.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	NamespaceFrom string `json:"namespaceFrom,omitempty"`
}
