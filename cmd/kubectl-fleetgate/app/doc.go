// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package app has the commands of `kubectl fleetgate`, one per file. They use kubectl's flags,
// printers and completion. The plugin has no permissions of its own: it reads and writes the hub
// with the user's kubeconfig.
//
// The packages of pkg/inspect decide what a command shows: explain has reasons and remedies, tree
// the resources of a placement, overview the fleet.
package app
