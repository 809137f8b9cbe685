// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the types of placement.kubernetes-fleet.io, the API that places resources
// on members.
//
// A user writes a ClusterResourcePlacement (cluster-scoped) or a ResourcePlacement (namespaced),
// which selects resources and members and sets the rollout strategy. From it the hub derives one
// policy snapshot and one or more resource snapshots; both are immutable. The scheduler creates
// bindings for each policy snapshot, one per picked member. The rollout moves a binding to a newer
// resource snapshot. Each binding has Works in the member's namespace. The agent creates one
// AppliedWork per Work on the member, which owns the applied objects. Conditions are reported in
// the opposite direction.
//
// Overrides change the resources of some members. Envelopes hold objects that must not take effect
// on the hub. Evictions, limited by disruption budgets, remove a placement from a member. Update
// runs roll out in stages with approvals.
//
// Every kind of a cluster-scoped placement has a namespaced counterpart with the same spec and
// status. Controllers handle both through PlacementObject and similar interfaces.
//
// Older served versions (v1, v1alpha1) have no Go types. Their schemas are generated from the types
// here, so that no field is dropped when a client writes an older version.
//
// Well-known labels, annotations, finalizers, names, condition types and reasons are in the file of
// the kind that has them. The schema validates rules that need only one object. Webhooks validate
// all others.
//
// +kubebuilder:object:generate=true
// +groupName=placement.kubernetes-fleet.io
package v1beta1
