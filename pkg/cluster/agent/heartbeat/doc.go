// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat reports a member to its hub.
//
// It runs on the member as the controller "internalmembercluster.heartbeat": it follows
// the InternalMemberCluster through which hub and agent talk. In state Join it looks,
// every heartbeatPeriodSeconds and at once when the hub changes the spec, whether the
// member's own API server is healthy, how many nodes there are and how much of their
// capacity is left, and what the member says of itself in ClusterClaims and
// ClusterProperties; also, when that has settled, which way the agent's tunnel goes and, if
// it is told to collect them, which namespaces there are. What has changed it reports in the object's status; if nothing has,
// it only renews the member's Lease, and reports every five minutes all the same. In
// state Leave it stops the agent's work and says that the agent has left; it removes
// nothing from the member.
//
// It is told the name of its InternalMemberCluster and looks at no other, and on the hub
// it writes only that object's status and the Lease.
package heartbeat
