// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package immutability enforces ImmutabilityPolicies: rules of a platform team for kinds that are not
// its own, for example the kinds of Cluster API and its providers.
//
// # What a policy can express
//
//   - A field must not change once it is set (Immutable), may be set once (OnceSet),
//     must not be removed (CannotUnset), must not be disabled (NoFalse), must not get an
//     older version (NoDowngrade). A list must not lose items (KeepItems) or may only be
//     reordered (SetEqual). Parts of a field can be exempt (exceptPaths), and a rule can
//     depend on a condition (when).
//   - A condition must hold, in CEL, as in a ValidatingAdmissionPolicy.
//   - Other objects can be read for it (lookups), if the author of the policy has
//     permission to read them.
//   - The last objects of a group must not be deleted or changed into something else
//     (guards), even with fifty concurrent requests.
//
// A response contains all violations of a request, each with its field. A policy denies, warns, or
// adds an audit annotation; Warn serves to try it out.
//
// # How it works
//
// There is one language and one matcher, and both are Kubernetes'. A policy is translated into CEL
// (translate.go, expressions.go), the same text that Export writes into a ValidatingAdmissionPolicy.
// It is compiled once per generation of the policy (compile.go) with the API server's own packages,
// environment and cost limits, and evaluated for each request (evaluate.go). The hub's API server
// does all the matching: each policy becomes one webhook of a ValidatingWebhookConfiguration
// (configuration.go), with its rules, selectors and matchConditions unchanged.
//
// Every replica watches the policies and serves them (policies.go, handler.go). The leader writes the
// webhooks and each policy's status (controller.go). A guard reserves a deletion before it allows it
// (guard.go, reservation.go): the object counts as deleted for 30 seconds. The reservations of a
// group of guarded objects are in one Lease, which all replicas write with the resourceVersion that
// they have read.
//
// # Limits
//
// It changes no object. It accepts no policy for resources that the hub depends on (Leases, events,
// reviews, webhook configurations), nor for all groups or all resources. It fails open unless an
// administrator names the API group for which it may fail closed. It reads no values of Secrets.
package immutability
