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
// policy. The framework knows what the rules do not: which clusters hold the
// placement already, and that those are never moved for a change that only
// concerns clusters to come.
//
// It serves the policies PickAll and PickFixed. Types are neutral: they belong
// to no API group, callers translate.
package framework
