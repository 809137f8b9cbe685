// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the v1alpha1 kind of the API group work.open-cluster-management.io:
// ManifestWorks for all clusters of a Placement.
//
// +kubebuilder:object:generate=true
// +groupName=work.open-cluster-management.io
package v1alpha1
