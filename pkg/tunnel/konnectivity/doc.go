// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package konnectivity speaks the protocol of Kubernetes' Konnectivity
// (apiserver-network-proxy) on both of its ends, so that fleets with its agents and
// its clients keep them. It is for compatibility: between fleetgate's own gateway and
// agent the native protocol is faster.
//
// # Who is who
//
//   - An agent dials the gateway and holds one gRPC stream, AgentService.Connect. In it
//     it is asked for connections and carries the bytes of all of them. [AgentServer]
//     takes upstream's agents and ours; [Connector] is ours.
//   - A frontend dials into members: kube-apiserver's EgressSelector, or a program
//     with konnectivity-client. It uses one stream of ProxyService.Proxy, or one HTTP
//     CONNECT request, for each connection. [FrontendServer] takes both at one port.
//   - What a frontend asks for goes through a [Dialer], so it reaches members with
//     native tunnels too. Nothing is forwarded from one stream to another as it is:
//     numbers that a peer chooses mean something on that peer's own stream only.
//
// # Identity
//
// Agents and frontends have listeners and credentials of their own: client
// certificates (common name and organizations are user and groups), service-account
// tokens, or both. The member that an agent serves is the one of which its identity is
// the agent. What it says of itself (agentID, agentIdentifiers) chooses at most among
// several of those. A frontend's right is asked for with every dial. An agent is
// asked after every few seconds, and a session ends with its credential.
//
// # What may be dialed
//
// The member's API server, and what configuration adds ([Allow]). Upstream's agents
// dial whatever they are asked to, so the gateway asks them for nothing else; our agent
// has its own list and believes nobody. Networks other than TCP are refused.
//
// # Slow readers
//
// The protocol has no windows: who receives cannot stop the sender of one connection
// without stopping all connections of that stream. What we do instead:
//
//   - Between our own ends there are windows after all, 1 MiB for each connection and
//     direction, and a half close. They are packets and fields that upstream ignores,
//     and are only used once both ends have said that they know them.
//   - From others, a connection may hold 8 MiB unread. A reader that is slower than
//     that holds up its sender as long as no other connection uses the stream. As soon
//     as one does, the slow connection is reset: it does not take others with it. Our
//     agent does the same for a target that takes nothing for 5 s, since a dial could
//     wait behind it.
//   - Towards others, one goroutine for each stream sends a packet of each connection
//     in turn. An agent of upstream's that stops reading stops all of its stream; more
//     lanes ([AgentServerOptions].Lanes) make that smaller.
//   - Each stream of ProxyService carries one connection, so gRPC's own windows are
//     those of the connection.
//
// # Ends
//
// Upstream has one word for the end of both directions and none for a reset. A read
// ends with io.EOF when the other side has closed; a connection whose stream broke ends
// with [tunnel.ErrSessionClosed], and one that was reset, if the peer can say so, with
// [tunnel.ErrReset]. What was sent before a close still arrives.
package konnectivity
