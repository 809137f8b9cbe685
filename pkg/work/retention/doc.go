// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retention handles objects that stay on a member because its hub was restored to an
// earlier state, so that no user asked for their removal. Objects of Works, ManifestWorks and
// ManagedServiceAccounts are handled alike:
//
//   - mark.go: the mark of retained objects on the member, with an id by which an administrator releases them on
//     the hub.
//   - book.go: the number of retained objects of an agent, for its reports.
//   - epoch.go: detects a restored hub if the hub has no object left that shows it. Works have their own method
//     (pkg/work/agent/apply).
package retention
