// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package placement delivers resources of the hub to members: it is the part of the gateway between a
// ClusterResourcePlacement and the Works in the members' namespaces.
//
// Each of these controllers handles one step of a placement. They communicate only through API objects:
//
//	placement.snapshots  snapshot/   placement and selected resources -> policy and resource snapshots
//	placement.scheduler  scheduler/  policy snapshot and members      -> bindings, policy snapshot's status
//	placement.rollout    rollout/    bindings and resource snapshots  -> bindings bound to the latest snapshot
//	placement.updateruns updaterun/  runs, strategies and approvals   -> bindings bound, stage by stage
//	binding.works        dispatch/   bound bindings and overrides     -> Works, and back to the bindings' conditions
//	placement.evictions  eviction/   evictions and budgets            -> bindings deleted
//	placement.failover   failover/   placements' terms and members    -> evictions
//	placement.reportback statusback/ Works' statuses                  -> the status of the resources on the hub
//	placement.status     status/     all of these                     -> the placement's status, events
//	placement.standard   standard/   bindings and ClusterProfiles     -> PlacementDecisions of multicluster.x-k8s.io
//
// Every step is triggered by a watch event. Any controller can be killed at any time, because it
// computes its work from stored objects. selection finds resources, framework and plugins decide on
// members, and objects looks up a placement's children.
//
// One more controller is for Open Cluster Management ([SetupReplicaSets]):
//
//	manifestworkreplicaset.works ocm/replicaset/ PlacementDecisions and status of ManifestWorks -> ManifestWorks
//
// ocm/rolloutstrategy decides its order. slicing divides decisions into objects.
//
// On the hub, the gateway needs read access to everything that can be placed and to MemberClusters, all
// verbs on the placement group, and the rights to create events and to write the status of placed
// resources.
//
// ClusterResourcePlacement and ResourcePlacement share all of it: a key without a namespace is a
// cluster-scoped placement. Only evictions, budgets and failover are limited to cluster-scoped
// placements.
package placement
