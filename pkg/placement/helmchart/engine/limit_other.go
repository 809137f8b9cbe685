// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package engine

// limit relies on the Go runtime's memory limit and on the gateway's timeout.
func limit() error { return nil }
