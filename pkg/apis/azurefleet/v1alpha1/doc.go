// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is how the first fleets were written down: the API group
// fleet.azure.com, in which joining and leaving is a field.
//
// Its two kinds are a view of the inventory (cluster.kubernetes-fleet.io): a
// MemberCluster here makes one there, and its status is copied back, with the
// conditions and events that the documents of that time show. It is served only if the
// gateway is told so, and has no short names: kubectl takes a bare "membercluster" for
// the present group.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.azure.com
package v1alpha1
