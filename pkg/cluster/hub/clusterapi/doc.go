// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterapi imports the clusters that Cluster API creates on the hub.
//
// It runs on the hub as the controller "clusterapi.import". For a Cluster of Cluster API that opted
// in, by [LabelAutoImport] on itself or on its namespace, it creates a Cluster of fleet.cattle.io
// in the same namespace that names the Secret "<cluster>-kubeconfig". Other packages do the rest:
// pkg/cluster/hub/importer installs the agent with that kubeconfig, once, and
// pkg/cluster/hub/registration answers when the agent registers.
//
// It waits until the control plane was initialized and the Secret exists, with the type, name and
// label of Cluster API's contract. It copies facts of Cluster API and its providers (region,
// failure domains, versions, spot pools) to labels and properties of the member, and keeps them up
// to date. When Cluster API's Cluster is deleted the member leaves; when it is gone nobody waits
// any more for an agent that cannot answer.
//
// [Importer] does not require Cluster API: it watches which version of the kind the hub serves,
// starts when there is one, and restarts when that changes.
//
// It never writes objects of Cluster API, deletes nothing on a member, and ignores Clusters that it
// did not create.
package clusterapi
