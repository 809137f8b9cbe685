// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options has the flags of the gateway. Each subject has a file with a struct,
// its defaults, flags and validation. Options contains all of them, and Config adds the
// content of the files that they name. Only the gateway's subcommands have other flags.
package options
