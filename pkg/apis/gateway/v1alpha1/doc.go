// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group cluster.core.oam.dev: access to members through the gateway.
//
// The gateway serves it as an aggregated API, without a CRD and without storage. There is a
// ClusterGateway for every MemberCluster, with the subresources
//
//	/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<member>/proxy/<path>
//	/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<member>/health
//
// The first forwards a request to the member's own API server. The second reports whether the
// member is reachable.
//
// Other implementations store the member's token or key in the object. fleetgate has no field for
// it, so that listing gateways reveals no secret. A request cannot choose its identity on the
// member; the gateway's configuration sets it.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.oam.core.cluster.v1alpha1
// +groupName=cluster.core.oam.dev
package v1alpha1
