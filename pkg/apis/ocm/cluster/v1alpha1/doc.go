// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds what kinds of Open Cluster Management share that are not kinds
// themselves: how something is rolled out to the clusters of a Placement.
//
// +kubebuilder:object:generate=true
package v1alpha1
