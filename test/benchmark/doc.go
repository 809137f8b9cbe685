// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package benchmark measures a whole fleet beside its baselines. It is what
// `make bench` runs, together with the benchmarks that live beside their code.
//
// A group is one benchmark function, named after the group: BenchmarkProxy is the
// group proxy. Below it stands what is done and then who does it, so that every
// figure has its baselines of the same run as neighbours:
//
//	BenchmarkProxy/get/fleetgate
//	BenchmarkProxy/get/direct
//
// Both sides of such a pair are done in turn, one after the other, in every round
// (sideBySide), so a machine that slows down slows both. The first one also prints
// the ratio, as "x-direct": the figure to look at, since absolute times are the
// machine's.
//
// What takes minutes is done once for all of them, and has one line with all figures
// (together).
//
// Each group starts a fleet of its own (package test/fleet: real processes on
// loopback) and stops it. Nothing here asserts a time: a benchmark fails only when
// what it measures does not work.
//
// The command bench chooses groups and prints the line that says on which machine.
// docs/performance.md explains the figures.
package benchmark
