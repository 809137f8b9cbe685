// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundtoken reads the claims of bound service account tokens and says when a token is
// due for a refresh. It is pure: agents and hub use it.
package boundtoken
