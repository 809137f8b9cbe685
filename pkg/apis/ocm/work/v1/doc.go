// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1 is the API group work.open-cluster-management.io: what one cluster is to
// have, said on the hub, and what it has got, noted on the cluster.
//
// A ManifestWork stands in the namespace on the hub that has the cluster's name. The
// cluster's agent brings its manifests there, keeps them as they are, and answers in the
// status of the ManifestWork. On the cluster it makes an [AppliedManifestWork], which owns
// what was brought and lists it, so that all of it can be found and removed again.
//
// +kubebuilder:object:generate=true
// +groupName=work.open-cluster-management.io
package v1
