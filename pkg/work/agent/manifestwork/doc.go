// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifestwork is the cluster's side of ManifestWorks. It applies the manifests of all
// ManifestWorks in the cluster's namespace on the hub, keeps the objects up to date and reports
// their status. It runs in the agent.
//
// It is a dialect of package engine (dialect.go), beside that of Works. A ManifestWork passes these
// files in order:
//
//  1. event.go: triggers of a reconcile. These are a change of the ManifestWork, a change of one of its
//     objects on the cluster, a new kind that it waits for, a retry after a refusal, and a slow resync.
//  2. controller.go: adds the finalizer.
//  3. plan.go: reads the manifests, with the configs of each (config.go). The ManifestWork gets an
//     AppliedManifestWork on the cluster (record.go), which owns its objects and stores its ledger.
//  4. The engine applies the manifests and evaluates feedback and condition rules on each object
//     (feedback.go, rules.go).
//  5. report.go: computes the status (status.go) and writes it if it differs.
//
// A reconcile without changes sends no requests.
//
// When a ManifestWork is deleted, its objects are removed first and its AppliedManifestWork last
// (deletion.go). If it disappears from the hub without a deletion, its objects are removed after a
// grace period (eviction.go).
//
// Names, conditions, reasons and messages are those of OCM, because its clients compare them.
package manifestwork
