// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustergateway is the way into a member: the resource
// clustergateways of the group cluster.core.oam.dev and its subresources proxy
// and health, for everyone who reaches members through the hub's API server.
//
// Who is who in a proxied request:
//
//   - The hub's API server, or the gateway for a direct caller, authenticates
//     the caller and authorizes clustergateways/proxy with the member as name
//     and the verb of the HTTP method. Handler then asks for create if the
//     request wants to switch protocols, and for deletecollection if it deletes
//     without a name: a WebSocket exec is a GET, a collection is more than one
//     object.
//   - With Config.AuthorizeMemberRequests the hub is asked about the request on the member
//     too (inner.go). What one user or member may have under way is bounded
//     (limits.go), and a record is kept of each request (audit.go).
//   - Parse reads the part of the path that the member gets once, refuses what
//     two readers could understand differently, and hands the same value to
//     authorization, to the choice of time limits and to forwarding.
//   - Impersonate says whom the member sees: the caller's name and groups, less
//     what would mean something else over there. Before the first request of a
//     caller the agent on the member is asked to allow exactly that name and
//     those groups (grants.go), so that a stolen token impersonates nobody else.
//     A member may be labelled to be reached as the gateway's own account instead.
//   - Every header of the caller that carries an identity is removed, ours are
//     set after the headers that Connection nominates are gone, and a request in
//     which a foreign one is still found is not sent.
//   - The member's API server is reached through its tunnel, over pooled TLS
//     connections that are verified against the CA that came with the token. The
//     token is read for each request, so that a rotation costs no connection.
//
// The gateway's own endpoint, /clusters/<member>/, is another name of that path
// (endpoint.go).
//
// ClusterGateway objects are computed from MemberClusters and the Secrets of the
// gateway's tokens, and stored nowhere; there is never a token or a key in them.
//
// What it refuses to do: follow redirects, dial anything but the member's API
// server, wait for a member that is away, or forward as system:masters.
package clustergateway
