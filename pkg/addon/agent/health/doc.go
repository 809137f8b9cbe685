// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package health reports on the hub whether the agents of add-ons are alive on the member: each
// renews a Lease with the name of the add-on, in its namespace. The controller's name is
// managedclusteraddon.health.
//
// It watches the ManagedClusterAddOns in the cluster's namespace on the hub. A healthy Lease is read
// again when it would expire, any other one at short intervals, so an idle member costs one request
// for each add-on in five minutes. decide.go holds the decision.
//
// It does not touch add-ons whose managers check their health themselves, and those whose agent runs
// on another cluster.
package health
