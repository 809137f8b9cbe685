// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group admission.fleetgate.io, the only one of
// fleetgate's own that users write.
//
// An ImmutabilityPolicy says, for objects of any API on the hub, which fields
// may not change once they are set, which further conditions an object must
// meet, and which objects may not be the last to go. The gateway's webhook
// enforces it. The vocabulary is fixed, one word per kind of rule
// ([FieldMode]), so that a list of fields needs no code; what it cannot say,
// CEL expressions do, with the variables that they have in Kubernetes' own
// ValidatingAdmissionPolicy.
//
// It is not a general policy engine: it changes nothing, and reads other
// objects only through lookups that the policy's author may make too.
//
// +kubebuilder:object:generate=true
// +groupName=admission.fleetgate.io
package v1alpha1
