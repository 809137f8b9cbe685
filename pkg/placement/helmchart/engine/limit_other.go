// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package engine

// limit leaves it at the memory limit of the Go runtime and the time that the gateway gives.
func limit() error { return nil }
