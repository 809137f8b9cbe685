// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package options has the settings of the agent: the fields of AgentConfiguration and the flags that
// override them. Each section has a file with its flags and validation. Config applies the defaults
// of unset namespaces, and reads the files that the settings name.
package options
