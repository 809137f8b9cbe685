// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects finds a placement and what was derived from it: policy
// snapshots, resource snapshots and bindings, of either scope.
//
// A placement is known by its namespace and name; without a namespace it is a
// ClusterResourcePlacement and its family is cluster-scoped, with one it is a
// ResourcePlacement and its family lives beside it. Controllers work with the
// interfaces that both scopes share, so this is the only package that tells the
// scopes apart.
//
// Lists go through an index of the cache (AddIndexes) and never scan. Resource
// snapshots, which hold everything that is placed, are read as metadata only.
package objects
