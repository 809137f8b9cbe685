// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduler is the controller placement.scheduler: it answers each
// policy snapshot with bindings.
//
// It translates MemberClusters, policy and bindings into the terms of package
// framework, has the decision made there, and carries it out: bindings are
// created (bound already, where the rollout says that they need not wait), adopted for a new policy, or marked Unscheduled for the rollout to
// withdraw. At last the policy snapshot's status tells the decision.
//
// Nothing is remembered between two looks. A binding's name follows from the
// placement's UID and the member, so a scheduler that was killed half way, or
// whose cache is behind, can never make two bindings for one member.
package scheduler
