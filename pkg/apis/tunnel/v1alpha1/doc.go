// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group tunnel.fleetgate.io: the endpoint of the agents' tunnels behind
// the hub's own API server.
//
// The gateway serves it as an aggregated API, without a CRD and without storage. An agent opens its
// tunnel by an upgrade request to
//
//	/apis/tunnel.fleetgate.io/v1alpha1/namespaces/fleet-member-<member>/tunnels/<member>/proxy
//
// The hub's API server authenticates it and authorizes it by the member's namespace and name before
// the gateway sees it. The right is in the Role in that namespace. Agents of the previous version
// omit the namespace and need a cluster-wide right. Discovery does not list the namespace, because
// Tunnels are cluster-scoped. The subresource is named proxy because API servers treat requests of
// that name as long-running. A Tunnel only reports whether its member is connected. There is one
// for every MemberCluster; clients cannot create or delete one.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=io.fleetgate.tunnel.v1alpha1
// +groupName=tunnel.fleetgate.io
package v1alpha1
