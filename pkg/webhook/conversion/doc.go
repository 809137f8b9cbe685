// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversion converts add-ons of Open Cluster Management between v1alpha1, which is stored,
// and v1beta1 for the hub's API server.
//
// [Convert] is pure, and changes only the fields in which the versions differ, so an old replica
// keeps fields that it does not know. What only v1alpha1 can express is in annotations of the v1beta1
// object: the install namespace as Open Cluster Management writes it, and the rest in one of ours.
//
// Converting a stored object never fails: an API server fails a whole list if one object of it cannot
// be converted. Fields that do not fit into annotations make an object read-only in v1beta1. What
// v1alpha1 cannot express, or its schema rejects, is refused when it is written.
//
// [Handler] answers the reviews, in every replica. [Definitions] are the CustomResourceDefinitions
// that send them. Without the handler, v1beta1 of these kinds is not served.
package conversion
