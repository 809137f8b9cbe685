// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel lets the gateway open connections to members that accept no connections
// themselves. Each member's agent dials the hub, and on that one connection, the session, the
// gateway opens streams to the member. SPEC.md in this folder is the protocol; read it first.
//
// The parts, from the gateway to the member:
//
//   - [Registry] holds the sessions of this gateway by member. DialMember opens a
//     stream to a target of a member and returns it as a net.Conn. A dial to a member
//     without a session fails at once with [ErrNotConnected].
//   - [Registry.UpgradeHandler] accepts sessions through the hub's API
//     server as an upgraded request. The caller has authenticated and authorized
//     that request, and names the member: this package never takes a member's name
//     from an agent's data.
//   - [Port] is the gateway's own port for agents, which authenticates them itself.
//   - [Peers] forwards a dial, once, to the replica of the gateway that holds a
//     session of the member.
//   - A [Multiplexer] is one session: it multiplexes streams over the connection. The
//     package native has the only implementation. A [Session] of another protocol is
//     added with [Registry.ServeSession].
//   - [HubDialer] connects the agent to the hub, [Egress] does so through a forward
//     proxy. [Connector] keeps sessions to the configured number of gateways, and
//     hands each stream to the [Target] that it names.
//   - [Dial], [TCP] and [Listener] are targets: pipe to an address, or serve HTTP.
//
// An agent reaches only the targets in its table, whatever a gateway asks for. The bytes of a
// stream belong to the caller. To a member's API server they are TLS end to end, which the caller
// verifies, not this package.
//
// The package tunneltest connects a Registry and a Connector in one process, for the tests of other
// packages.
package tunnel
