// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API group addon.open-cluster-management.io: add-ons of clusters.
//
// A [ClusterManagementAddOn] describes an add-on and the clusters that get it. Each of these has a
// [ManagedClusterAddOn] in its namespace on the hub, which the add-on's manager turns into
// ManifestWorks. Configurations are objects of any kind; [AddOnDeploymentConfig] and
// [AddOnTemplate] are kinds that many add-ons share.
//
// v1alpha1 is the stored version. Package v1beta1 has the kinds with another schema in v1beta1.
//
// +kubebuilder:object:generate=true
// +groupName=addon.open-cluster-management.io
package v1alpha1
