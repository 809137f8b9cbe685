// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine renders Helm charts with Helm's own packages: the output of `helm template`,
// without a cluster. It is the only package with Helm in it. It runs in a separate process
// ([Serve]), which is ended when a chart takes too long.
//
// The same values must always give the same objects. So functions with random or changing results,
// such as randAlphaNum, now or genCA, are refused by name, and keys and values of a map are sorted.
// Templates have only the chart's files, no environment and no name resolution, and lookup finds
// nothing.
//
// Hooks for installation and upgrade are ordinary objects. Tests, and hooks for deletion or
// rollback, are left out.
package engine
