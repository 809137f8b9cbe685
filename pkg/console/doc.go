// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console shows a fleet in a browser: a server on loopback that renders pages from
// what it reads of the hub as the user. Nothing new is exposed by the hub, and no credential
// of the hub is in the browser.
//
// Others on the machine can reach loopback too, and so can every page that the browser has
// open. So the server has its port on all of loopback (listen.go), and answers one host alone, whose name nobody can guess
// (<random>.localhost, since cookies ignore ports), only to who has the cookie that the first
// hit of a one-time URL was exchanged for (guard.go). Pages are html/template, so that what
// members and users write is text in them; texts are cut, and lose what turns their
// direction (render.go). The only writes are the buttons of runs, which show the request
// first, and need a form of this server's own.
package console
