// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decisions reads what Placements have decided, for all who roll something out to the
// clusters: ManifestWorkReplicaSets and add-ons. It translates PlacementDecisions and rollout
// strategies of the API into the values of package rolloutstrategy, and recognizes incomplete lists
// of decisions, which must not remove anything.
package decisions
