// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apis is the root of the API groups, a folder for each group and
// version. It holds no code of its own.
//
//	cluster         the inventory: members, and what hub and agent tell each other
//	placement       what goes where, and how it got there
//	registration    how a cluster becomes a member
//	authentication  rotating tokens of service accounts on members
//	gateway         the way into a member (aggregated, no CRD)
//	tunnel          where agents' tunnels come in (aggregated, no CRD)
//	multicluster    how members are published to other clients
//	ocm             kinds of Open Cluster Management; work is what one cluster is to have,
//	                cluster for which clusters, and how these are come to
//	admission       immutability of other objects: the only group of our own that
//	                users write
//	crds            the CRDs, generated from the types, embedded
//	openapi         the descriptions of the aggregated groups, generated
//
// The types are written after the public APIs of the same names: a manifest
// that works there means the same here, field for field. Packages under this
// one import nothing else of fleetgate.
package apis
