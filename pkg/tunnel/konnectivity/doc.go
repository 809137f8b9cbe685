// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package konnectivity speaks the protocol of Kubernetes' Konnectivity (apiserver-network-proxy) on
// both of its ends, so that fleets with its agents and clients can keep them. It exists for
// compatibility: between fleetgate's own gateway and agent the native protocol is faster.
//
// # Roles
//
//   - An agent dials the gateway and holds one gRPC stream, AgentService.Connect. The
//     gateway asks for connections in it, and the bytes of all of them pass through it.
//     [AgentServer] accepts upstream's agents and ours; [Connector] is ours.
//   - A frontend dials into members: kube-apiserver's EgressSelector, or a program with
//     konnectivity-client. It uses one stream of ProxyService.Proxy, or one HTTP CONNECT
//     request, for each connection. [FrontendServer] accepts both at one port.
//   - A frontend's dial goes through a [Dialer], so it also reaches members with native
//     tunnels. No packet is forwarded unchanged from one stream to another: numbers that a
//     peer chooses are valid only on that peer's own stream.
//
// # Identity
//
// Agents and frontends have separate listeners and credentials: client certificates (common name
// and organizations are user and groups), service-account tokens, or both. An agent serves the
// member whose agent its identity is. The agent's own data (agentID, agentIdentifiers) can only
// choose among several such members. A frontend is authorized for every dial. An agent is
// authorized again every few seconds, and a session ends with its credential.
//
// # Allowed targets
//
// Allowed are the member's API server and the addresses that configuration adds ([Allow]).
// Upstream's agents dial whatever they are asked to, so the gateway asks them for nothing else.
// Our agent also checks its own list. Networks other than TCP are refused.
//
// # Slow readers
//
// The protocol has no windows: a receiver cannot stop the sender of one connection without stopping
// all connections of that stream. This package does the following instead:
//
//   - Between our own ends, each connection has a window of 1 MiB in each direction, and a
//     half close. They use packets and fields that upstream ignores, and only after both
//     ends have announced support.
//   - A connection of any other peer may hold 8 MiB unread. A slower reader stops its
//     sender while no other connection uses the stream. As soon as one does, the slow
//     connection is reset, so that it does not block others. Our agent does the same for a
//     target that reads nothing for 5 s, since a dial could be waiting behind its data.
//   - To other peers, one goroutine for each stream sends a packet of each connection in
//     turn. An upstream agent that stops reading stops its whole stream; more streams
//     ([AgentServerOptions].StreamsPerAgent) limit the effect.
//   - Each stream of ProxyService carries one connection, so gRPC's own windows are those
//     of the connection.
//
// # Ends
//
// Upstream has one packet for the end of both directions and none for a reset. A read ends with
// io.EOF when the other side has closed. A connection whose stream broke ends with
// [tunnel.ErrSessionClosed], and one that was reset, if the peer can signal that, with
// [tunnel.ErrReset]. Data that was sent before a close still arrives.
package konnectivity
