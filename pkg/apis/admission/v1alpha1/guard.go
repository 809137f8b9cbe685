// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// GuardedOperation is an operation that a guard can refuse.
// +kubebuilder:validation:Enum=DELETE;UPDATE
type GuardedOperation string

const (
	// GuardDelete is the deletion of an object that counts.
	GuardDelete GuardedOperation = "DELETE"
	// GuardUpdate is a change after which an object counts no longer.
	GuardUpdate GuardedOperation = "UPDATE"
)

// Guard keeps a number of objects from being deleted, or changed into something
// that does not count. Whoever it lets pass holds a reservation for 30 seconds,
// in which the object counts as gone: parallel requests cannot pass together.
type Guard struct {
	// name tells the guard from the policy's others.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// operations are DELETE, UPDATE or both.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	Operations []GuardedOperation `json:"operations"`

	// countedWhen is a CEL expression of object, one object of the kind under
	// admission; it counts if this is true. Empty means that all count.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	CountedWhen string `json:"countedWhen,omitempty"`

	// scope says among which objects is counted. Empty means all of the kind. An
	// object that lacks the scope's label is not guarded.
	// +optional
	Scope *GuardScope `json:"scope,omitempty"`

	// minRemaining is how many must be left. It defaults to 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinRemaining int32 `json:"minRemaining,omitempty"`

	// allowWhen are CEL expressions; the guard lets the request pass if one is
	// true. Empty means none.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=4096
	// +listType=atomic
	// +optional
	AllowWhen []string `json:"allowWhen,omitempty"`

	// message is what a caller reads whom the guard stops. Empty means a text
	// that names the guard and the number.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
}

// GuardScope says among which objects a guard counts: those that share all of
// it with the object under admission.
type GuardScope struct {
	// sameNamespace counts only in the object's namespace. It defaults to false.
	// +optional
	SameNamespace bool `json:"sameNamespace,omitempty"`

	// sameLabel counts only objects with the object's value of this label. Empty
	// means that no label matters.
	// +kubebuilder:validation:MaxLength=317
	// +optional
	SameLabel string `json:"sameLabel,omitempty"`
}
