// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template is the manager of add-ons that have an AddOnTemplate instead of a manager of their
// own. The controllers' names are managedclusteraddon.template, clustermanagementaddon.template and
// certificatesigningrequest.template.
//
// The first one (controller.go) renders the ManifestWorks of each cluster (package render), registers the
// add-on's agent, binds its rights on the hub (bindings.go), and reports by the ManifestWorks' feedback
// whether the add-on works (health.go). It watches ManagedClusterAddOns, their configurations,
// ClusterManagementAddOns, ManagedClusters, ManifestWorks and the RoleBindings that it created. The
// second one (hashes.go) writes the hashes of configurations, which package configuration rolls out, also
// those of add-on fleetgate-agent, which reads them with agent.go. The third one (requests.go) approves
// certificates, and signs those of a template's own signer.
//
// A template is rendered only while its hash is the one that was rolled out to the cluster, and only if
// specs name it: a cluster's agent may write the status. What an AddOnTemplate asks for on the hub is
// done as one account, ManagerAccount: rights are bound, authorities read and certificates signed with the
// rights of that account and no others. A configuration that is missing changes nothing on the cluster.
// Garbage collection deletes the ManifestWorks with its ManagedClusterAddOn.
package template
