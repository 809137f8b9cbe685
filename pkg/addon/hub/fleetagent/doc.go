// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetagent makes clusters with klusterlets members, by the add-on fleetgate-agent: it
// delivers fleetgate's agent as a ManifestWork, which the klusterlet applies. It runs on the hub.
//
// For each ManagedClusterAddOn of that name the [Reconciler] creates a Cluster of fleet.cattle.io
// with the name of the ManagedCluster, and a registration token for this Cluster only. The token is
// in the ManifestWork until the agent is registered, and is deleted then. The cluster keeps its
// ManagedCluster and its klusterlet, which alone applies its ManifestWorks: the agent has no rights in
// the cluster's namespace. If the add-on is removed, the member leaves before its agent is deleted, and
// what was placed stays.
//
// A user who creates a ManagedClusterAddOn decides only that the agent runs. From which image and in
// which namespace is the gateway's configuration: spec.installNamespace and annotations do not count. An
// AddOnDeploymentConfig, which is rolled out like that of any add-on, decides on the proxy and the nodes.
// An object that the add-on did not create is not changed, and nothing is deleted because something else
// is missing. A cluster that has fleetgate's own agent already gets no other.
package fleetagent
