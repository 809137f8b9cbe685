// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleetview lets a user of the hub read many members as if they were one API
// server: a list is asked of each member, as the caller and by the same way as the caller
// would take alone (package clustergateway), and the replies are made one while they come
// in (package splice). Nothing of members is kept.
//
// # Which path
//
//	/apis/cluster.core.oam.dev/v1alpha1/fleetviews/<view>/proxy/<path>
//
// beside clustergateways/<member>/proxy, and at the gateway's own endpoint
// /fleets/<view>/<path>. A view is
//
//   - all: every member;
//   - the name of a FleetView, an object of group view.fleetgate.io;
//   - labels:<selector>, or qualified:<selector>, with a selector of MemberClusters as
//     kubectl -l takes it, where a colon stands for the slash of a key.
//
// Why so. The view is one segment of the path, and not part of the query: clients take a
// server's URL apart, keep its path and drop its query; kubectl and client-go clean the
// path with path.Join, which changes neither a colon nor an equals sign, a comma, a space
// or a parenthesis, and writes of them what has to be in percent. The slash of a label's
// key is the one character that would not survive: the hub refuses none of it, but what is
// behind it would be another segment. No object's name has a colon, so that no FleetView
// can be mistaken for a selector. And since the segment is the name in the request that
// the hub authorizes, RBAC's resourceNames can give out each form: a view's name, all, or
// one selector exactly as it is spelled. An asterisk for all would read as RBAC's
// wildcard, which it is not in resourceNames.
//
// The group of the path is not the group of the object. A group and version is served by
// CRDs or by this API server, never by both.
//
// # Who is who
//
//   - The hub authorizes the view: get on fleetviews/proxy of its name; create for the
//     questions of callers about themselves, which are POSTs.
//   - The hub is asked which members the caller may reach: get on clustergateways/proxy,
//     for all names at once, and for each name only if that is refused. Other members are
//     neither asked nor mentioned.
//   - Each member is asked as its caller, and refuses what its RBAC refuses. What is read
//     of a fleet is the union of what the same caller reads one by one.
//
// # What a member can do
//
// Say nothing: it is named in a Warning header when its deadline has passed. Refuse: it is
// counted in one. Lack a kind: that is no error. Break off: what was not begun is a 502, what
// was is ended with an error that every client sees, and never silently short. Its bytes
// are cut into items and nothing else, within bounds.
//
// # Watches
//
// A watch follows each member by a watch of its own and writes what all of them tell. One
// that began with what was there remembers which objects it has sent, and no more of them:
// so a member that leaves takes its objects with it, as DELETED events, and one that has
// compacted is listed and compared. One that went on where a list or a watch ended does not
// know what its caller has: a member that leaves ends it with 410, and the caller lists again.
//
// Where a watch is takes a number for each member: too much for each event. Lists and bookmarks
// have all of them, and any replica goes on from there; an event has a cursor, a number by which
// the gateway that gave it finds where the watch was. Each watch keeps where it is, and of its last
// events what each of them has changed in that: to go on from one, what came later is undone.
package fleetview
