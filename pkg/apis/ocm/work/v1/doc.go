// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API group work.open-cluster-management.io: the desired objects of one cluster,
// on the hub, and the record of applied objects, on the cluster.
//
// A ManifestWork is in the namespace on the hub that has the cluster's name. The cluster's agent
// applies its manifests, corrects drift, and reports in the status of the ManifestWork. On the
// cluster it creates an [AppliedManifestWork], which owns and lists the applied objects, so that
// the agent can find and remove all of them.
//
// +kubebuilder:object:generate=true
// +groupName=work.open-cluster-management.io
package v1
