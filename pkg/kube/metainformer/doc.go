// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metainformer keeps one watch of metadata for each resource of an API server that
// somebody needs just now.
//
// A [Set] is told which resources are needed, and starts and stops watches until it has
// just these. It knows nothing of who needs them: users of placements' selections on the
// hub and works' objects on a member keep that, and say what of an object stays in memory,
// what a change means and what is to be done about a resource that may not be watched.
//
// Who begins a Set ends it, and then no watch is left and none starts any more.
package metainformer
