// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apis is the root of the API groups, with a folder for each group and version. It has no
// code.
//
//	cluster         inventory: members, and the status that agents report
//	placement       selection, rollout and status of resources on members
//	registration    registration of clusters
//	authentication  rotated tokens of service accounts on members
//	gateway         access to members (aggregated, no CRD)
//	tunnel          endpoint of agents' tunnels (aggregated, no CRD)
//	multicluster    publication of members to other clients
//	ocm             kinds of Open Cluster Management: work (objects of one cluster),
//	                cluster (clusters, sets and placements)
//	admission       immutability of other objects: fleetgate's own group for users
//	view            groups of members that are read like one cluster
//	azurefleet      first API of KubeFleet (fleet.azure.com)
//	crds            generated CRDs, embedded
//
// The types follow the public APIs of the same names: a manifest for these has the same meaning
// here, for every field.
//
// This folder is a Go module of its own. It needs no controller, API server or client, so that
// programs that only use the types do not download those of fleetgate.
package apis
