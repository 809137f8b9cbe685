// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubevents writes the events of a member's agent to its namespace on the hub.
//
// ResourceQuotas do not count events, so the admission policy fleetgate-member-sizes limits
// their names: it accepts clusterv1beta1.MaxAgentEvents names in a member's namespace. [Of] returns
// recorders that use these names in turn. The hub deletes an event after an hour, and its name is
// free again. While all names are in use, further events are dropped. Conditions contain the same
// information.
package hubevents
