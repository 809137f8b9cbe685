// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnels serves the endpoint at which members' agents open their tunnels through the hub's
// API server. It is an upgraded POST to
// /apis/tunnel.fleetgate.io/v1alpha1/namespaces/fleet-member-<member>/tunnels/<member>/proxy.
// Agents of the previous version leave the namespace out of the path.
//
// The hub has authenticated the agent and authorized create on tunnels/proxy with the member's
// name, in the member's namespace if the path has it. Handler checks that the member belongs to
// exactly this identity and hands the connection over. This package does not know the protocol on
// the connection. The resource tunnels is read-only and says whether a member is connected to this
// replica.
//
// At the gateway's own ports no request has passed the hub. There, Tokens authenticates agents, and
// Dials authorizes Konnectivity clients that dial through tunnels.
package tunnels
