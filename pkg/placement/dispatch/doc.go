// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch is the controller binding.works: it turns bindings into Works
// in the namespaces of members, and what members say about their Works into the
// conditions of bindings.
//
// A bound binding has one Work for each part of its resource snapshot and one for
// each envelope in it, always at least one, even if nothing is selected: an empty
// Work is what takes things off a member again. Works that a binding no longer needs are deleted. A Work that
// belongs to another binding is never touched; the binding waits until it is
// gone and says so.
//
// The cache holds Works without their manifests, but with a hash of them
// (CacheOptions), so a Work is written only when it differs, and whoever edits
// one on the hub finds it put right.
//
// A binding that is being deleted is held by a finalizer until its Works are
// gone, which the members' agents hold until they have cleaned up: the finalizer with
// which they do is on the Works of members that have joined from the start.
//
// That Works are on their way a binding's status says only after a while without an answer
// (underway.go): mostly one write tells all.
//
// The overrides that a binding lists are applied on the way; if they do not fit,
// the Works stay as they are and the condition Overridden says why.
//
// A placement that is deleted with the policy Abandon has marked its bindings so;
// their Works are marked before they are deleted, and the agents leave what they
// applied.
//
// For a placement of a namespace nothing is sent but objects of that namespace
// (foreign.go), whatever a snapshot says.
//
// How the status of objects is reported back stands in the placement, and is passed on
// to its Works; what comes of it is package placement/reportback's.
package dispatch
