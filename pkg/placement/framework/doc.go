// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package framework decides which clusters a placement gets: a snapshot of the
// fleet goes in, a decision and the reasons against the other clusters come
// out.
//
// It is a library without a client and without a clock: the time is part of the
// snapshot, so the same input always gives the same decision, in a controller,
// in a test or in a person's "what if".
//
// The rules themselves are packages below ../plugins, each one small function
// over one cluster; a Profile says which of them judge for which kind of
// policy, and who ranks. The framework knows what the rules do not: which
// clusters hold the placement already, and that those are never moved for a
// change that only concerns clusters to come. A cluster loses the placement
// because the policy changed, because fewer clusters are wanted, or because it
// left; never because it was tainted, relabelled or fell silent since.
//
// PickN works in rounds: all candidates are judged once by the rules, then the
// best is taken, again and again, while a Spread is told of each. The score of
// the spread counts before that of affinity, then comes whether the cluster has
// the placement by an earlier policy, and at last its name, the larger first.
//
// Profile.Decide is the way to decide for placements that keep what they have. One
// that filters, scores and cuts anew each time asks the same rules of the same types.
//
// Types are neutral: they belong to no API group and no family of APIs. Callers
// translate, hand in the rules, and word what people read of a Choice.
package framework
