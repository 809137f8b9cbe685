// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importer installs the agent on clusters whose kubeconfig the hub was given.
//
// It runs on the hub as the controller "cluster.import" ([Reconciler]). For a Cluster
// with spec.kubeConfigSecret it reads that Secret once, makes a registration token for
// this Cluster alone, renders the agent's chart with it ([Chart]), and applies that on the
// cluster, which then has what Helm would have installed. From then on the agent registers
// as every other, and the kubeconfig is not looked at again, unless
// spec.redeployAgentGeneration or the hub's address changes: neither its rotation nor its
// expiry matters to a member.
//
// Whoever writes the Secret would decide what the gateway runs, reads and calls, so it
// goes through pkg/kube/kubeconfig, only from the Cluster's own namespace, and every
// call has a time limit. What stands in the way is the condition Imported. Nothing is
// deleted on the cluster but what a gateway before the chart had installed (former.go).
package importer
