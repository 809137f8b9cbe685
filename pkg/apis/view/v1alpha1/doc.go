// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group view.fleetgate.io: groups of members that clients read like one
// cluster.
//
// A FleetView selects members. It is stored as a CRD. The gateway serves reads through it at
//
//	/apis/cluster.core.oam.dev/v1alpha1/fleetviews/<name>/proxy/<path>
//
// in the same group as the proxy of one member. The right `get` on fleetviews/proxy of that name on
// the hub allows its use. It grants no access to members: a response contains only what its caller
// can read on each member.
//
// +kubebuilder:object:generate=true
// +groupName=view.fleetgate.io
package v1alpha1
