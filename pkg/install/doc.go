// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts on the hub what the gateway needs there beside itself:
// its namespace, CustomResourceDefinitions, APIServices, the Service that leads
// to them, admission policies and webhook configurations. The leader does it at
// start, and again when the serving authority changes.
//
// The hub may already serve these public APIs from another product. So nothing
// is touched that does not carry the label of ours: the object, its owner and
// the remedy are named instead, nothing is installed beside it, and the gateway
// does not start on half an API. With Adopt such objects are taken over as a
// whole, but only when the other product's leader Lease has gone stale. A
// CustomResourceDefinition that a newer gateway installed is left as it is: an old
// replica never takes fields away. What leads to the gateway follows its leader.
//
// An installer may be killed at any moment: the next one ends in the same state,
// after the Lease of the first has run out.
//
// It does not grant rights. The roles of the gateway come with its chart.
package install
