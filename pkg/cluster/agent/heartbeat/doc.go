// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat reports the state of a member to its hub.
//
// It runs on the member as controller "internalmembercluster.heartbeat" and reconciles the member's
// InternalMemberCluster. In state Join it reports every heartbeatPeriodSeconds, and at once when
// the hub changes the spec: the health of the member's API server, the number of nodes and their
// free capacity, and the member's ClusterClaims and ClusterProperties. It also reports the path of
// the agent's tunnel once it is stable and, if enabled, the member's namespaces. It writes the
// status only if something changed, or every five minutes; otherwise it only renews the member's
// Lease. In state Leave it stops the agent's work and reports that the agent has left. It removes
// nothing from the member.
//
// On the hub it reads no other InternalMemberCluster, and writes only that object's status and the
// Lease.
package heartbeat
