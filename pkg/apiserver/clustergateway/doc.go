// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustergateway serves the resource clustergateways of the group cluster.core.oam.dev with
// its subresources proxy and health. Callers reach members through it.
//
// How a proxied request is authenticated and authorized:
//
//   - The hub's API server, or the gateway for a direct caller, authenticates
//     the caller. It authorizes clustergateways/proxy with the member as name
//     and the verb of the HTTP method. Handler then also requires create if the
//     request wants to switch protocols, because a WebSocket exec is a GET, and
//     deletecollection if a DELETE names no object.
//   - With Config.AuthorizeMemberRequests the hub also authorizes the request on the
//     member (authorize.go). limits.go limits the requests in flight of one user and
//     of one member, and audit.go records each request.
//   - Parse reads the part of the path that the member gets exactly once. It
//     refuses paths that two readers could understand differently. Authorization,
//     the choice of time limits and forwarding all use the same value.
//   - Impersonate decides which identity the member sees: the caller's name and
//     groups, without those that mean something else on a member. Before the
//     first request of a caller, the gateway asks the member's agent to allow
//     exactly that name and those groups (grants.go), so that a stolen token
//     cannot impersonate anybody else. A label on a member makes the gateway use
//     its own account there instead.
//   - Every header of the caller that carries an identity is removed. The
//     gateway's headers are set after the headers that Connection nominates are
//     gone. A request that still has a foreign identity header is not sent.
//   - The member's API server is reached through its tunnel, over pooled TLS
//     connections that are verified against the CA that came with the token. The
//     token is read for each request, so a rotation costs no connection.
//
// The gateway's own endpoint, /clusters/<member>/, is an alias of that path (endpoint.go).
//
// ClusterGateway objects are computed from MemberClusters and the Secrets of the gateway's tokens.
// They are not stored, and they never contain a token or a key.
//
// The package never follows redirects, dials anything but the member's API server, waits for a
// disconnected member, or forwards as system:masters.
package clustergateway
