// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch is the controller binding.works. It turns bindings into Works in the members'
// namespaces, and the status of Works into conditions of bindings.
//
// A bound binding has one Work for each part of its resource snapshot and one for each envelope in it.
// It has at least one Work even if nothing is selected, because an empty Work removes resources from a
// member. Works that a binding no longer needs are deleted. The controller never touches a Work of
// another binding: the binding waits until that Work is deleted, and its status says so.
//
// A reconciliation reads the input (input.go), then sync.go has four stages: read the snapshots and check
// what may be sent, transform their parts for the member (transform.go), build Works from the results
// (build.go), and write those that differ (write.go). Works are built last because their number depends on the size of rendered charts.
//
// The cache stores a hash instead of the manifests of Works (CacheOptions). So the controller writes a
// Work only when it differs, and reverts changes that somebody makes to a Work on the hub.
//
// A finalizer keeps a deleted binding until its Works are deleted. The members' agents keep those with
// a finalizer of their own until they have cleaned up. Works of joined members have that finalizer from
// the start.
//
// A binding's status reports Works as in flight only after a while without a report of the agent
// (inflight.go), so that mostly one write is enough.
//
// If the overrides that a binding lists do not fit, the Works stay as they are and the condition
// Overridden gives the reason.
//
// A placement that is deleted with the policy Abandon has annotated its bindings. Their Works are
// annotated before they are deleted, and the agents keep what they applied.
//
// A namespaced placement delivers only objects of its namespace (foreign.go), whatever a snapshot
// contains.
//
// The placement's reportBackStrategy is copied to its Works; package placement/statusback copies the
// statuses.
package dispatch
