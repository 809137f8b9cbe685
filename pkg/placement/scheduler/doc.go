// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler is the controller placement.scheduler: it turns each policy snapshot into bindings.
//
// It translates MemberClusters, policy and bindings for package framework, which makes the decision,
// and carries the decision out. Bindings are created, adopted for a new policy, or marked Unscheduled
// for the rollout to withdraw. New bindings are bound already if the rollout does not make them wait.
// Afterwards the policy snapshot's status reports the decision.
//
// The controller stores nothing between two reconciliations. A binding's name follows from the
// placement's UID and the member, so a scheduler that was killed, or whose cache lags, cannot create
// two bindings for one member.
package scheduler
