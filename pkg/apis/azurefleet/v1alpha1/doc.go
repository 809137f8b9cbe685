// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group fleet.azure.com, the first API of KubeFleet, in which joining
// and leaving is a field.
//
// Its two kinds are a view of the inventory (cluster.kubernetes-fleet.io). A MemberCluster here
// creates one there. Its status is copied back, with the conditions and events of the first API. It
// is served only if the gateway is configured so. It has no short names, so that kubectl resolves
// "membercluster" to the current group.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.azure.com
package v1alpha1
