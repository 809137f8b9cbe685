// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects finds a placement and its policy snapshots, resource snapshots and bindings, of
// either scope.
//
// A placement is identified by its namespace and name. Without a namespace it is a
// ClusterResourcePlacement and its children are cluster-scoped. With one it is a ResourcePlacement and
// its children are in the same namespace. Controllers use the interfaces that both scopes share, so
// only this package distinguishes them.
//
// Lists use an index of the cache (AddIndexes). Resource snapshots, which contain everything that is
// placed, are read as metadata only.
package objects
