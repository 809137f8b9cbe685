// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package benchmark measures a whole fleet beside its baselines. It is what
// `make bench` runs, together with the benchmarks that live beside their code.
//
// A group is one benchmark function, named after the group: BenchmarkProxy is the group proxy.
// Below it are the operation and then the program, so that every figure is next to its baselines of
// the same run:
//
//	BenchmarkProxy/get/fleetgate
//	BenchmarkProxy/get/direct
//
// Both sides of a pair take turns in every round (sideBySide), so a machine that slows down slows
// both. The first one also prints the ratio, as "x-direct". Compare ratios, since absolute times
// depend on the machine.
//
// Measurements that take minutes run once, with one line for all figures (together).
//
// Each group starts and stops its own fleet (package test/support/fleet: real processes on loopback).
// Nothing here asserts a time: a benchmark fails only when an operation fails.
//
// The command bench chooses groups and prints the line that says on which machine.
// docs/reference/performance.md explains the figures.
package benchmark
