// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer installs the agent on clusters with a kubeconfig on the hub.
//
// It runs on the hub as the controller "cluster.import" ([Reconciler]). For a Cluster with
// spec.kubeConfigSecret it reads that Secret once, creates a registration token for this Cluster alone,
// renders the agent's chart with it ([Chart]), and applies the result on the cluster, like Helm would.
// Then the agent registers like any other. The kubeconfig is read again only if
// spec.redeployAgentGeneration, the hub's address or the agent's settings change, so its rotation and expiry do not affect a
// member.
//
// The author of the Secret could otherwise control what the gateway runs, reads and calls. So the
// kubeconfig is parsed by pkg/kube/kubeconfig, is read only from the Cluster's own namespace, and every
// call has a time limit. The condition Imported reports problems. The importer deletes nothing on the
// cluster except objects of gateways that did not use the chart (former.go).
package importer
