// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metainformer keeps one metadata watch for each resource of an API server that is needed
// now.
//
// A [Set] receives the needed resources, and starts and stops watches accordingly. It does not know
// who needs them. Its users track that: placements' selections on the hub, and works' objects on a
// member. They also decide which part of an object stays in memory, what a change means and how to
// handle a resource that RBAC does not allow to be watched.
//
// The creator of a Set ends it. Then no watch is left and none starts any more.
package metainformer
