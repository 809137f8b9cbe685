// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writepriority has the gateway's writes made in the order in which others wait for them.
//
// A hub to which many members come, or many placements, is busy writing, and all that is
// written at the same time takes longer by each other: what the first members get would hold up
// that the last are let in, Works of the first members the decision about the others, and
// reports on what arrived the delivery of what did not. So while more urgent writes are under
// way, or were a moment ago, less urgent ones go a few at a time, and else as many as there are.
// None ever waits for good: a few are always under way.
package writepriority
