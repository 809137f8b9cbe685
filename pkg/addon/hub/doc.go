// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hub serves add-ons of Open Cluster Management on the hub, for managers that others wrote:
// it creates ManagedClusterAddOns (install), decides their configurations (configuration), and
// reports their progress (progress). Package token creates the accounts of agents that authenticate
// with tokens, and builtin shows the features of fleetgate's agent as add-ons. Package fleetagent is the
// manager of one add-on, which delivers fleetgate's agent to clusters with klusterlets.
//
// All controllers read one cache, with the indexes of package objects, so that an event reconciles
// only the add-ons that it concerns. Labels of ManagedClusters about add-ons, and their
// unavailability with the cluster's, are in pkg/cluster/hub/ocm/klusterlet, which also signs
// certificates of their agents if nobody else does.
//
// Package template is the manager of add-ons that have AddOnTemplates, and package fleetagent that of
// add-on fleetgate-agent. For all others the hub creates no ManifestWork, grants agents of add-ons no
// rights, approves none of their requests and reads no configuration: the add-on's manager does.
package hub
