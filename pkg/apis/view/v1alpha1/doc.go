// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group view.fleetgate.io: which members somebody reads
// as if they were one cluster.
//
// A FleetView is a name for a choice of members. It is stored as a CRD; what is read
// through it is served by the gateway at
//
//	/apis/cluster.core.oam.dev/v1alpha1/fleetviews/<name>/proxy/<path>
//
// beside the way into one member, so that one right of the hub, `get` on fleetviews/proxy
// of that name, says who may use it. It opens no member: what an answer holds is what its
// caller may read on each member anyway.
//
// +kubebuilder:object:generate=true
// +groupName=view.fleetgate.io
package v1alpha1
