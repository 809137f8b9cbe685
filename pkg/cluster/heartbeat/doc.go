// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heartbeat reports a member to its hub.
//
// It runs on the member as the controller "internalmembercluster.heartbeat": it follows
// the InternalMemberCluster through which hub and agent talk. In state Join it writes,
// every heartbeatPeriodSeconds and at once when the hub changes the spec, that the agent
// has joined, whether the member's own API server is healthy, how many nodes there are,
// and how much of their capacity is left. In state Leave it stops the agent's work and
// says that the agent has left; it removes nothing from the member.
//
// It is told the name of its InternalMemberCluster and looks at no other, and it writes
// only that object's status.
package heartbeat
