// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestwork is the cluster's side of a ManifestWork: it brings the manifests of
// every ManifestWork in the cluster's namespace on the hub to the cluster, keeps them
// there, and reports what became of them. It runs in the agent.
//
// It is a dialect of package engine (dialect.go), beside that of Works. A ManifestWork goes
// through these files, in this order:
//
//  1. event.go: what starts a look. That is a change of the ManifestWork, a change of one
//     of its objects on the cluster, a new kind for which it waits, a back-off after a
//     refusal, and a slow resync.
//  2. controller.go: the ManifestWork gets its finalizer.
//  3. plan.go: what it asks for, manifest by manifest (config.go). It gets an
//     AppliedManifestWork on the cluster (record.go), which owns what it brings and holds
//     its ledger.
//  4. The engine brings it, and looks into each object for what is to be told of it
//     (feedback.go).
//  5. report.go: the status is computed (status.go) and written if it differs.
//
// A look that finds by the watch that nothing changed asks nobody for anything, and writes
// nothing anywhere.
//
// When a ManifestWork is deleted, what it brought goes and then its AppliedManifestWork
// (deletion.go). One that vanished from the hub is believed after a while (eviction.go).
//
// What the names, conditions, reasons and messages are is laid down by Open Cluster
// Management, whose clients compare them.
package manifestwork
