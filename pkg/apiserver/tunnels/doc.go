// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnels is where the agents of members open their tunnels through the
// hub's API server: an upgraded POST to
// /apis/tunnel.fleetgate.io/v1alpha1/namespaces/fleet-member-<member>/tunnels/<member>/proxy,
// or, by agents of before, to the same without the namespace.
//
// The hub has authenticated the agent and authorized create on tunnels/proxy
// with the member's name, in the member's namespace if that is in the path. Handler makes sure that the member is one of those
// that belong to this very identity, and hands the connection over; what is
// spoken on it is no business of this package. The resource tunnels itself is
// read-only and tells whether a member is connected to this replica.
//
// At ports of the gateway's own nobody has asked the hub before: Tokens and Dials do, for
// agents that come there, and for Konnectivity's clients, which dial through tunnels.
package tunnels
