// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updaterun carries out staged update runs: it moves the members of a
// placement with strategy External to one resource snapshot, stage by stage.
//
// A run is initialised once: Initialize works out which member is in which stage,
// which policy, apply strategy and overrides hold, and all of it is written into
// the run's status. From then on Next says what to do, from the run, the bindings,
// the members, the approvals and the time: bindings to bind or to delete, approvals
// to ask for or to accept, and the status to write once that is done. Both are
// functions without a cluster. The Reconciler is the controller
// placement.updateruns around them, for runs of either scope.
//
// A run never adapts: when the placement's policy, its members or their stages are
// not those of its beginning any more, it fails and another one has to be made.
// What looks so in the cache is looked at again on the API server before. A member
// that does not become available is waited for; after five minutes the run says
// that it is stuck.
//
// Everything it waits for is an event, but for the end of a TimedWait and of those
// five minutes.
package updaterun
