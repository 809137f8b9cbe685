// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token creates the accounts of which agents of add-ons get tokens for the hub: those whose
// cluster's agent chose the driver token. The controller's name is managedclusteraddon.token.
//
// It watches ManagedClusterAddOns, the acceptance of their ManagedClusters, and what it created. For
// each such add-on there is an account in the cluster's namespace, a Role to request tokens of it, and
// a RoleBinding to the cluster's agents. Condition TokenInfrastructureReady has the account's UID.
// With another driver, without the add-on, or when the cluster is no longer accepted, all of this is
// deleted, which ends the tokens. decide.go holds the decisions.
//
// It grants the account no rights: the add-on's manager does. It never takes over an account or Role
// without its labels, because the cluster's agent would get tokens with its rights.
package token
