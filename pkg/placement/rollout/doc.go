// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout moves a placement's bindings to the latest resource snapshot,
// and to the latest overrides of it for their member, at the pace that its
// strategy allows, and withdraws those that the scheduler has dropped.
//
// Plan is the arithmetic: candidates in, what may be done now out. It knows no kind
// of objects, so that other kinds of rollouts can go by it. The Reconciler
// is the controller placement.rollout around it. Progress comes from the
// bindings' conditions, so every step is an event; the one thing that needs a
// timer is a binding whose availability nobody can track, which counts as
// available after a while.
//
// Begin is for the scheduler: new bindings with which a rollout would begin at once are
// bound before they are stored, which is one write instead of two.
//
// Under strategy External both do nothing: package updaterun decides.
package rollout
