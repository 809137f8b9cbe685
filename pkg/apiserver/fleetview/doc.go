// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetview lets a user of the hub read many members as if they were one API server. The
// gateway sends a list request to each member, as the caller and in the same way as for a single
// member (package clustergateway). It merges the replies while they come in (package splice). It
// stores nothing of members.
//
// # Paths
//
//	/apis/cluster.core.oam.dev/v1alpha1/fleetviews/<view>/proxy/<path>
//
// is next to clustergateways/<member>/proxy. At the gateway's own endpoint it is
// /fleets/<view>/<path>. A view is one of:
//
//   - all: every member;
//   - the name of a FleetView, an object of group view.fleetgate.io;
//   - labels:<selector>, or qualified:<selector>, with a selector of MemberClusters as
//     kubectl -l takes it, where a colon replaces the slash of a key.
//
// The view is one segment of the path, and not part of the query, because clients keep the path of
// a server's URL and drop its query. kubectl and client-go clean the path with path.Join. That
// changes no colon, equals sign, comma, space or parenthesis, and percent-encodes what has to be.
// Only the slash of a label's key would not survive: the hub accepts it, but the rest of the key
// would become another segment. No object's name contains a colon, so no FleetView can be mistaken
// for a selector. The segment is the name in the request that the hub authorizes. RBAC's
// resourceNames can therefore grant each form: a view's name, all, or one selector with exactly
// this spelling. An asterisk would look like RBAC's wildcard, which resourceNames do not have, so
// the view of all members is named all.
//
// The group of the path is not the group of the object: a group and version is served by CRDs or
// by this API server, never by both.
//
// # Authorization
//
//   - The hub authorizes the view: get on fleetviews/proxy of its name; create for
//     callers' reviews of themselves, which are POSTs.
//   - The hub says which members the caller may reach: get on clustergateways/proxy, for all
//     names at once, and for each name only if that is denied. Other members get no request
//     and are not mentioned.
//   - Each member gets the request as the caller, and applies its own RBAC. The result is the union
//     of what the same caller reads from the members one by one.
//
// # Failures of members
//
// A member that does not reply within its deadline is named in a Warning header. Members that
// refuse the request are counted in one. A member without the kind is not a failure. If a reply
// breaks off, the response is a 502, or, if it has begun, ends with an error that every client
// detects; it is never incomplete without saying so. A member's bytes are only cut into items, within
// limits.
//
// # Watches
//
// A watch reads each member with a watch of its own (reader.go), merges the events of all of them into
// lines (merger.go), and writes the lines (writer.go). A watch that began with a list remembers which
// objects it has sent, within a limit. When a member leaves,
// it can therefore send DELETED events for its objects, and it can list and compare a member that
// has compacted. A watch that resumed from an earlier list or watch does not know its caller's
// objects: when a member leaves it ends with 410, and the caller lists again.
//
// The position of a watch is one number per member, which is too much for each event. Lists and
// bookmarks carry all of them, and any replica can resume there. An event carries a cursor, a number
// from which the gateway that issued it can find the position. Each watch keeps its current position
// and, for its last events, what each event changed in it. To resume from an event, later changes
// are undone.
package fleetview
