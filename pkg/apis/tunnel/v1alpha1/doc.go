// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group tunnel.fleetgate.io: where the agents'
// tunnels come in through the hub's own API server.
//
// The gateway serves it as an aggregated API, without a CRD and without
// storage. An agent opens its tunnel by an upgraded request to
//
//	/apis/tunnel.fleetgate.io/v1alpha1/namespaces/fleet-member-<member>/tunnels/<member>/proxy
//
// so the hub's API server has authenticated and authorized it, by the member's
// namespace and name, before the gateway sees it: the right to do so is one of the Role
// in that namespace. Agents of before leave the namespace out, and need a right of the
// whole hub. The namespace is in no discovery: Tunnels are of the hub. The subresource is called proxy since API
// servers know requests of that name as long-running. A Tunnel itself tells
// only whether its member is connected; there is one for every MemberCluster,
// and nobody creates or deletes one.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.fleetgate.tunnel.v1alpha1
// +groupName=tunnel.fleetgate.io
package v1alpha1
