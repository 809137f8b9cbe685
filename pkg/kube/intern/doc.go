// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package intern makes the objects in caches smaller without changing what they say. A hub's
// caches hold tens of thousands of objects that say the same in most of their strings: types,
// reasons and messages of conditions, labels, owners, namespaces. Each was read on its own, so
// each has its own copies, and its lists have room for elements that never came.
//
// A Table has equal strings share one copy, cuts lists to their length, and drops managedFields.
// It remembers a bounded number of strings, those that came last. What an object says is the same
// before and after, so a copy of it can be changed and written as if it had come from the hub.
package intern
