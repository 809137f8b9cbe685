// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package override changes selected resources for single members. A ClusterResourceOverride or
// ResourceOverride names resources; its rules change or delete them on the members that they select by
// label.
//
// It has three parts:
//
//   - The controllers override.clustersnapshots and override.snapshots store each override as numbered
//     snapshots, of which the last 10 are kept. So a rollout can move members from one version of an
//     override to the next, one after the other.
//   - [Set] selects the snapshots for a placement, and for one of its members. The rollout writes
//     those into the member's binding.
//   - [Set.Apply] changes manifests. The dispatcher calls it when it creates Works.
//
// Overrides are applied in the order of their names, cluster-scoped ones first. Of one override, every
// rule that selects the member is applied, so later rules win. An override of a namespace applies to
// everything in it.
//
// Rules are evaluated again when a member's labels change, and variables also when its annotations or
// properties change. If a rule cannot be applied (a patch does not fit, the member lacks a label), the
// member keeps its version and the binding's condition Overridden has the reason. If the result of a
// rule is an invalid object, the condition WorkSynchronized has the reason, where clients look for it.
package override
