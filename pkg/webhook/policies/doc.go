// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policies is what guards the hub while no gateway runs: the
// ValidatingAdmissionPolicies beside this file, each with its binding and with its
// reason on top. All but those that say why fail closed: an expression that breaks
// refuses, so every one of them asks has() before it reads. Conditions say first what
// costs least, since a policy sees every write of its kinds.
//
// What differs from hub to hub stands in a file as $(name), a parameter: in an expression
// it becomes a literal of CEL, quoted, and nothing else can be made of it.
package policies
