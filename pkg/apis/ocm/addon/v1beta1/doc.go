// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is a served version of the API group addon.open-cluster-management.io. v1alpha1 is
// the stored one.
//
// [ClusterManagementAddOn] and [ManagedClusterAddOn] have another schema than in v1alpha1. The
// gateway converts them (pkg/webhook/conversion), and the installer serves this version of them when
// it can. AddOnDeploymentConfig and AddOnTemplate have the same schema in both versions, so they have
// no types here.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1beta1
