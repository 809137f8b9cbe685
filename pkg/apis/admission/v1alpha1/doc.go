// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group admission.fleetgate.io, the only group that is fleetgate's own
// and that users write.
//
// An ImmutabilityPolicy sets, for objects of any API on the hub, which fields are immutable once
// set, which further conditions an object must meet, and how many objects must remain. The
// gateway's webhook enforces it. Each kind of rule has a fixed name ([FieldMode]), so that lists of
// fields need no code. For everything else there are CEL expressions, with the variables of a
// ValidatingAdmissionPolicy.
//
// It is not a general policy engine: it changes nothing, and reads other objects only through
// lookups that the author of the policy can read too.
//
// +kubebuilder:object:generate=true
// +groupName=admission.fleetgate.io
package v1alpha1
