// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intern reduces the memory of cached objects without changing their content. A hub's
// caches hold tens of thousands of objects with mostly the same strings: types, reasons and
// messages of conditions, labels, owners, namespaces. Each object was decoded separately, so each
// has its own copies, and its slices have spare capacity.
//
// A Table makes equal strings share one copy, cuts slices to their length, and drops managedFields.
// It keeps a limited number of recent strings. The content of an object does not change, so a copy
// of it can be changed and written as if it had come from the hub.
package intern
