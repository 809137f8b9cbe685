// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hubevents writes the events of a member's agent into its namespace on the hub.
//
// Kubernetes counts events against no quota, so nothing but their names bounds how many an
// agent makes: the policy fleetgate-member-sizes takes clusterv1beta1.MaxAgentEvents
// names in a member's namespace and no others. [Of] gives an agent recorders that
// use these names, one after the other. The hub forgets an event after an hour, and its name
// can be used again; as long as all are taken, further events are dropped. What became of
// something is in its conditions, which tell the same.
package hubevents
