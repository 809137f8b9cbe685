// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine renders Helm charts by Helm's own packages: what `helm template` would
// print, without a cluster. It is the only package with Helm in it, and meant to run in a
// process of its own ([Serve]), which ends, or is ended, when a chart takes too long.
//
// A chart gives the same objects for the same values whenever it is rendered, so functions
// that would not, as randAlphaNum, now or genCA, are refused by name, and keys and values
// of a map come sorted. There are no files but the chart's, no environment, no names to look
// up, and lookup finds nothing.
//
// Of hooks, those for installation and upgrade are ordinary objects; tests, and what would
// run when something is deleted or rolled back, are left out.
package engine
