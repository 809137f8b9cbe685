// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package override lets members get something else than what was selected: a
// ClusterResourceOverride or ResourceOverride names resources, and rules change
// them, or keep them off, on the members that they choose by label.
//
// It has three parts:
//
//   - The controllers override.clustersnapshots and override.snapshots keep each
//     override as numbered snapshots, of which the last 10 stay, so that a rollout
//     moves members from one state of an override to the next, and not all at once.
//   - [Set] says which snapshots matter for a placement and which of them for a
//     member. The rollout writes those into the member's binding.
//   - [Set.Apply] changes manifests. The dispatcher does it when it makes Works.
//
// Overrides are taken in the order of their names, those of cluster-scoped
// resources first, and of one override every rule that chooses the member, so
// what comes later wins. An override of a namespace is for everything in it.
//
// Rules are evaluated again when a member's labels change, variables also when its
// annotations or properties do. What cannot be done (a patch that does not fit, a label
// that the member lacks) keeps what the member has as it is, and the binding's condition
// Overridden says why. A rule that can be carried out, and makes of an object something
// that is none, is told where clients look for it, in the condition WorkSynchronized.
package override
