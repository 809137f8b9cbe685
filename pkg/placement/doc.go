// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement brings resources of the hub to members: the part of the
// gateway between a ClusterResourcePlacement and the Works in the members'
// namespaces.
//
// These controllers work on a placement, each on one hop, and know of each other
// only what stands in the API:
//
//	placement.snapshots  snapshot/   placement and selected resources -> policy and resource snapshots
//	placement.scheduler  scheduler/  policy snapshot and members      -> bindings, policy snapshot's status
//	placement.rollout    rollout/    bindings and resource snapshots  -> bindings bound to the latest snapshot
//	placement.updateruns updaterun/  runs, strategies and approvals   -> bindings bound, stage by stage
//	binding.works        dispatch/   bound bindings and overrides     -> Works, and back to the bindings' conditions
//	placement.evictions  eviction/   evictions and budgets            -> bindings deleted
//	placement.failover   failover/   placements' terms and members    -> evictions
//	placement.reportback reportback/ Works' reports                   -> the status of the resources on the hub
//	placement.status     status/     all of these                     -> the placement's status, events
//	placement.standard   standard/   bindings and ClusterProfiles     -> PlacementDecisions of multicluster.x-k8s.io
//
// Every hop is a watch event. Any of them can be killed at any moment: what has
// to be done follows from what is there. selection finds resources, framework
// and plugins decide about members, simulate has them decide about files, family
// reads a placement's children.
//
// Apart from these, for Open Cluster Management's Placements ([SetupReplicaSets]):
//
//	manifestworkreplicaset.works replicaset/ PlacementDecisions and answers of clusters -> ManifestWorks
//
// strategy says whose turn it is there. slicing cuts decisions into objects.
//
// The gateway needs, on the hub: read access to everything that may be placed,
// all verbs on the placement group, read access to MemberClusters, and leave to
// create events and to write the status of what may be placed.
//
// ClusterResourcePlacement and ResourcePlacement share all of it: a key without a
// namespace is the one, a key with a namespace the other. Only evictions, budgets
// and failover are for cluster-scoped placements.
package placement
