// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package immutability enforces ImmutabilityPolicies: rules that a platform team
// writes down for kinds that are not its own, such as those of Cluster API and its
// providers.
//
// # What a policy can say
//
//   - This field may not change once it is there (Immutable), may be set once
//     (OnceSet), may not go away (CannotUnset), may not be switched off (NoFalse),
//     may not get older (NoDowngrade); this list may not lose items (KeepItems) or
//     may only be reordered (SetEqual). Parts of a field may be left out
//     (exceptPaths), a rule may hold under a condition only (when).
//   - This condition must hold, in CEL, as in a ValidatingAdmissionPolicy.
//   - These other objects may be read for it (lookups), if the author of the policy
//     may read them.
//   - The last ones may not be deleted or turned into something else (guards), also
//     when fifty people try at once.
//
// All that is wrong with a request is told at once, each with its field. A policy
// denies, warns, or leaves a note in the audit log: it is tried out in Warn.
//
// # How it works
//
// There is one language and one matcher, and both are Kubernetes'. A policy is
// translated into CEL (translate.go, expressions.go), the same text that Export
// writes into a ValidatingAdmissionPolicy; it is compiled once for a generation of
// the policy (compile.go) with the API server's own packages, environment and cost
// limits, and evaluated for a request (evaluate.go). Which requests those are, the
// hub's API server decides: a policy becomes one webhook of a
// ValidatingWebhookConfiguration (configuration.go), with its rules, selectors and
// matchConditions as they stand. So there is no matching here at all.
//
// Every replica follows the policies by watch and serves them (policies.go,
// handler.go). The leader writes the webhooks and each policy's status
// (controller.go). A guard reserves before it lets pass (guard.go,
// reservation.go): what was let go counts as gone for 30 seconds, in one Lease for
// each group of guarded objects that all replicas write with the resource version
// that they have read.
//
// # What it refuses
//
// It changes no object. It takes no policy for what the hub cannot live without
// (Leases, events, reviews, webhook configurations), nor for all groups or all
// resources. It fails open unless an administrator names the API group for which it
// may fail closed. It reads no Secret's values.
package immutability
