// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is the commands of `kubectl fleetgate`, a file for each, as kubectl's own
// are: its flags, its printers, its completion. The plugin has no rights of its own: it is
// the user's kubeconfig for the hub, and all that it knows it reads there.
//
// What a command shows is decided in packages below, by functions of what was read: package
// why for reasons, tree for what a placement consists of, hub for the fleet at a glance.
package plugin
