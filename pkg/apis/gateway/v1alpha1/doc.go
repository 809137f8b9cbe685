// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group cluster.core.oam.dev: the way into a
// member.
//
// The gateway serves it as an aggregated API, without a CRD and without
// storage. There is a ClusterGateway for every MemberCluster, with the
// subresources
//
//	/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<member>/proxy/<path>
//	/apis/cluster.core.oam.dev/v1alpha1/clustergateways/<member>/health
//
// The first hands a request on to the member's own API server, the second
// tells whether the member would answer.
//
// Where others of this API put the member's token or key into the object, this
// one has no field for it: who may list gateways learns no secret. Nor can a
// request choose whose identity it has on the member; the gateway's
// configuration does.
//
// +kubebuilder:object:generate=true
// +k8s:openapi-gen=true
// +k8s:openapi-model-package=dev.oam.core.cluster.v1alpha1
// +groupName=cluster.core.oam.dev
package v1alpha1
