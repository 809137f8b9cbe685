// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel lets the gateway open connections into members that listen for
// nobody: each member's agent dials the hub, and on that one connection, the
// session, the gateway opens streams towards the member. SPEC.md in this folder is
// the protocol; read it first.
//
// The parts, from the gateway to the member:
//
//   - [Registry] holds the sessions of this gateway by member. DialMember opens a
//     stream to a target of a member and gives it out as a net.Conn; a member
//     without a session is refused at once with [ErrNotConnected].
//   - [Registry.UpgradeHandler] takes sessions that come in through the hub's API
//     server as an upgraded request. The caller has authenticated and authorized
//     that request, and names the member: this package never takes a member's name
//     from what an agent sends.
//   - [Port] is the gateway's own port for agents, which authenticates them itself.
//   - [Peers] passes a dial on, once, to the replica of the gateway that holds a
//     session of the member.
//   - A [Carrier] is one session: it multiplexes streams over the connection. The
//     package native holds the one there is. A [Session] of another protocol joins by
//     [Registry.ServeSession].
//   - [HubDialer] is the agent's way to the hub, [Egress] the way through a forward
//     proxy below it. [Connector] keeps sessions up, to as many gateways as it is
//     told, and hands each stream to the [Target] that it names.
//   - [Dial], [TCP] and [Listener] are targets: pipe to an address, or serve HTTP.
//
// An agent reaches only what its table of targets holds, whatever a gateway asks
// for. The bytes of a stream are the caller's: towards a member's API server they
// are TLS from end to end, which is verified there and not here.
//
// The package tunneltest connects a Registry and a Connector in one process, for
// the tests of other packages.
package tunnel
