// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package objects finds the objects that belong to an add-on, for all controllers of add-ons:
// indexes of the manager's cache, the decisions of an install strategy, and the objects that an
// event is about.
package objects
