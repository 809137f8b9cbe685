// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// GuardedOperation is an operation that a guard can reject.
// +kubebuilder:validation:Enum=DELETE;UPDATE
type GuardedOperation string

const (
	// GuardDelete is the deletion of an object that counts.
	GuardDelete GuardedOperation = "DELETE"
	// GuardUpdate is a change after which an object no longer counts.
	GuardUpdate GuardedOperation = "UPDATE"
)

// Guard protects a minimum number of objects from deletion, or from a change after which they do
// not count. A request that it allows reserves the object for 30 seconds, during which it counts as
// gone, so that parallel requests cannot pass together.
type Guard struct {
	// name of the guard, unique in the policy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// operations are DELETE, UPDATE or both.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +required
	Operations []GuardedOperation `json:"operations"`

	// countedWhen is a CEL expression of object, an object of the guarded kind, that is true if it
	// counts. If unset, all count.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	CountedWhen string `json:"countedWhen,omitempty"`

	// scope limits the objects that are counted together. If unset, all of the kind. An object
	// without the label of the scope is not guarded.
	// +optional
	Scope *GuardScope `json:"scope,omitempty"`

	// minRemaining is how many objects must remain. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinRemaining int32 `json:"minRemaining,omitempty"`

	// allowWhen are CEL expressions; if one is true, the guard allows the request. If unset, none.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	AllowWhen []string `json:"allowWhen,omitempty"`

	// message to the caller if the guard rejects the request. If unset, a text with the name of the
	// guard and the number.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// GuardScope limits the counted objects to those that match the guarded object in every field that
// is set.
type GuardScope struct {
	// sameNamespace counts only objects in the same namespace. Default false.
	// +optional
	SameNamespace bool `json:"sameNamespace,omitempty"`

	// sameLabel counts only objects with the same value of this label. If unset, labels are
	// ignored.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SameLabel string `json:"sameLabel,omitempty"`
}
