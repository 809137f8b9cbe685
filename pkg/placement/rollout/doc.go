// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout moves a placement's bindings to the latest resource snapshot, and to its latest
// overrides for their member, at the pace of its strategy. It withdraws bindings that the scheduler has
// dropped.
//
// Plan is the arithmetic: it takes candidates and returns the possible steps. It knows no API types, so
// that other kinds of rollouts can use it. The Reconciler is the controller placement.rollout. The
// bindings' conditions show the progress, so every step is triggered by a watch event. The only timer
// is for a binding whose availability is not trackable, which counts as available after a while.
//
// Begin is for the scheduler: new bindings that a rollout would start at once are bound before they are
// stored, with one write instead of two.
//
// Under strategy External both do nothing: package updaterun decides.
package rollout
