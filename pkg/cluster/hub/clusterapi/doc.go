// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterapi imports the clusters that Cluster API makes on the hub.
//
// It runs on the hub as the controller "clusterapi.import". For a Cluster of Cluster API
// that opted in, by [LabelAutoImport] on itself or on its namespace, it makes a Cluster of
// fleet.cattle.io in the same namespace that names the Secret "<cluster>-kubeconfig".
// Everything else is the work of others: pkg/cluster/hub/importer installs the agent with that
// kubeconfig, once, and pkg/cluster/hub/registration answers when the agent registers.
//
// It waits until the control plane has been up once and the Secret is there, of the type,
// name and label that Cluster API's contract asks for. It reads what Cluster API and its
// providers know of the cluster (region, failure domains, versions, spot pools) into labels
// and properties of the member, and follows them. When Cluster API's Cluster is deleted the
// member leaves; when it is gone nobody waits any more for an agent that cannot answer.
//
// [Importer] needs nothing of Cluster API: it looks which version of the kind the hub
// serves, starts when there is one, and starts again when that changes.
//
// It never writes anything of Cluster API, deletes nothing on a member, and leaves Clusters
// alone that it did not make.
package clusterapi
