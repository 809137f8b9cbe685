// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the member's side of Works. It applies the manifests of all Works in the
// member's namespace on the hub, keeps the objects up to date and reports their status. It runs in
// the agent.
//
// It is a dialect of package engine (dialect.go). This package handles Works; the engine handles
// objects. A Work passes these files in order:
//
//  1. event.go: triggers of a reconcile. These are a change of the Work's spec, a change of one of its objects
//     on the member, a new kind that it waits for, a retry after a refusal, and a slow resync. Changed Works
//     come first.
//  2. controller.go: waits for the Work's turn (throttle.go) and adds the finalizer.
//  3. plan.go: reads the manifests (items.go). The Work gets an AppliedWork of the same name on the member
//     (record.go), which owns all its objects and stores its ledger (ledger.go). ownership.go decides which
//     other owners are allowed. state.go and epoch.go detect a restored hub, and retention.go retains objects
//     then. job.go describes the Work to the engine.
//  4. write.go: the engine applies the manifests. If the Work also defines a kind, the reconcile waits until
//     the member serves it.
//  5. report.go: computes the Work's status (status.go) with the conditions of its manifests (conditions.go)
//     and of the Work (summary.go), writes it if it differs, and schedules the next reconcile.
//
// A reconcile without changes sends no requests.
//
// A deleted Work is finalized object by object, with the AppliedWork last (deletion.go), or
// abandoned if the hub requests it.
//
// This package does not write objects that another AppliedWork owns, unless both sides allow
// co-ownership. It does not delete objects without its owner reference, or objects that another
// Work wants (next owner.go). While a member leaves the fleet it removes nothing: placed resources stay.
package apply
