// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options has the settings of the gateway: the fields of GatewayConfiguration and the flags
// that override them. Each section has a file with its defaults, flags and validation. Options
// contains all of them, and Config adds the content of the files that they name. Only the gateway's
// subcommands have other flags.
package options
