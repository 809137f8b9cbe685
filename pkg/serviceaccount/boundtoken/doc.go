// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundtoken reads the claims of bound service account tokens and computes refresh times.
// It has no side effects. Agents and the hub use it.
package boundtoken
