// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options is the gateway's flags. Each part that they configure has a file with
// a struct, its defaults, its flags and what is wrong with them; Options are all of them,
// and Config is what they mean once the files that they name are read. No other package
// of the gateway reads flags, but for those of its commands that are no servers.
package options
