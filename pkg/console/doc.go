// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console is the web console: a server on loopback that renders pages from the hub with the
// user's credentials. The hub exposes nothing new, and the browser gets no credential of the hub.
//
// Other users of the machine and every page in the browser can reach loopback, too. So the server
// binds its port on all loopback addresses (listen.go). It answers only requests for one host name
// that cannot be guessed (<random>.localhost, since cookies ignore ports), and only with a cookie
// that the first request for a one-time URL receives (guard.go). Pages are html/template, so text
// from members and users is escaped; it is also shortened and stripped of characters that change
// the text direction (render.go). The only writes are the buttons of update runs. They show the
// request first, and require a form token of this server.
package console
