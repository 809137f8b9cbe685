// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 holds the types of placement.kubernetes-fleet.io: what goes
// to which members, and how it got there.
//
// A user writes a ClusterResourcePlacement (cluster-scoped) or a
// ResourcePlacement (namespaced): which resources, which members, how to roll
// out. From it the hub derives, and never edits again, a policy snapshot and
// one or more resource snapshots. The scheduler answers each policy snapshot
// with bindings, one per chosen member. The rollout moves a binding to a newer
// resource snapshot; for each binding there are Works in the member's
// namespace, and on the member one AppliedWork per Work, which owns what was
// applied. Conditions travel the same way back.
//
// Overrides change what a member gets, envelopes carry objects that must not
// take effect on the hub, evictions and disruption budgets take a placement
// off a member, update runs roll out in stages with approvals.
//
// Every kind of a cluster-scoped placement has a namespaced twin with the same
// spec and status; PlacementObject and its siblings are the view that
// controllers take of either.
//
// Older served versions (v1, v1alpha1) have no Go types of their own: their
// schemas are generated from these, so that nothing is dropped when a client
// writes through one of them.
//
// Well-known labels, annotations, finalizers, names, condition types and
// reasons stand in the file of the kind that carries them. The package decides
// nothing: rules that one object can be checked against by itself are in the
// schema, all others in the webhooks.
//
// +kubebuilder:object:generate=true
// +groupName=placement.kubernetes-fleet.io
package v1beta1
