// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updaterun carries out staged update runs: it moves the members of a placement with strategy
// External to one resource snapshot, stage by stage.
//
// A run is initialized once. Initialize assigns the members to stages and determines the policy, apply
// strategy and overrides, and all of it is stored in the run's status. Afterwards Next decides from the
// run, the bindings, the members, the approvals and the time: which bindings to bind or delete, which
// approvals to request or accept, and the status to write afterwards. Both are functions that need no
// cluster. The Reconciler is the controller placement.updateruns, for runs of either scope.
//
// A run never adapts. If the placement's policy, its members or their stages change, the run fails and
// a user has to create another one. Before it fails, the controller reads the API server instead of the
// cache. The run waits for a member that does not become available; after five minutes its status
// reports that it is stuck.
//
// Watch events trigger all steps except the end of a TimedWait and of those five minutes.
package updaterun
