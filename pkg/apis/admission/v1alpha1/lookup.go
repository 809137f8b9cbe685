// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MissingPolicy is what happens if a lookup finds nothing.
// +kubebuilder:validation:Enum=Skip;Deny
type MissingPolicy string

const (
	// MissingSkip skips the expressions that read the lookup.
	MissingSkip MissingPolicy = "Skip"
	// MissingDeny treats them as broken.
	MissingDeny MissingPolicy = "Deny"
)

// Lookup is other objects that expressions may read, as params.lookups.<name>:
// the object itself for get, its list for list. Later lookups may read earlier
// ones. The policy's author must be allowed to read them. Of Secrets, only the
// keys are shown, not the values.
// +kubebuilder:validation:XValidation:rule="has(self.get) != has(self.list)",message="a lookup needs either get or list"
type Lookup struct {
	// name is what expressions call it.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-zA-Z][a-zA-Z0-9_]*$`
	Name string `json:"name"`

	// get names one object. Empty means that list is given.
	// +optional
	Get *ObjectGet `json:"get,omitempty"`

	// list selects objects, at most 500. Empty means that get is given.
	// +optional
	List *ObjectList `json:"list,omitempty"`

	// onMissing is what happens if get finds nothing: Skip, the default, or Deny.
	// +kubebuilder:default=Skip
	// +optional
	OnMissing MissingPolicy `json:"onMissing,omitempty"`
}

// ObjectList selects objects of one kind on the hub.
type ObjectList struct {
	// apiVersion is the objects'; a version "*" is the one that the hub prefers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// kind is the objects'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// allNamespaces looks in every namespace. It defaults to false, which means
	// that of the object under admission.
	// +optional
	AllNamespaces bool `json:"allNamespaces,omitempty"`

	// sameLabel selects objects with the value that this label has on the object
	// under admission; without such a label none. Empty means that no label
	// matters.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SameLabel string `json:"sameLabel,omitempty"`
}

// ObjectGet names one object on the hub.
type ObjectGet struct {
	// apiVersion is the object's; a version "*", as in cluster.x-k8s.io/*, is the
	// one that the hub prefers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`

	// kind is the object's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`

	// nameFrom is a CEL expression for the object's name. An empty one looks up
	// nothing, whatever onMissing says.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	NameFrom string `json:"nameFrom"`

	// namespaceFrom is a CEL expression for the object's namespace. Empty means
	// that of the object under admission.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	NamespaceFrom string `json:"namespaceFrom,omitempty"`
}
