// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention is about what stays on a member since its hub went back to an earlier state:
// nobody has said that it is to go. What asked for it may be a Work, a ManifestWork or a
// ManagedServiceAccount; all are held in one way:
//
//   - mark.go: what is held says so on the member, with an id by which an administrator lets it
//     go on the hub.
//   - book.go: how much is held, counted over all that the agent brings, for whoever tells it.
//   - epoch.go: how an agent knows that the hub went back, where the hub has nothing left that
//     would say so. Works know it by themselves (pkg/work/agent/apply).
package retention
