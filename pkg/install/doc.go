// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install puts the gateway's dependencies on the hub: its namespace, CustomResourceDefinitions,
// APIServices, the Service behind them, admission policies and webhook configurations. The leader
// installs them at its start, and again when the serving authority changes.
//
// The hub may already serve these public APIs from another product. So the installer does not touch
// objects without our label. It names the object, its owner and the remedy, installs nothing, and the
// gateway does not start with a part of an API. With Adopt it replaces such objects completely, but
// only when the other product's leader Lease has expired. It does not change a CustomResourceDefinition
// that a newer gateway installed, so that an old replica never removes fields. Objects that route
// requests to the gateway follow the leader's version.
//
// A version that a gateway must convert is served only while the Keeper knows where the API server finds
// the conversion.
//
// An installer can be killed at any time: the next one reaches the same state, after the first one's
// Lease has expired.
//
// It does not grant rights. The chart contains the gateway's roles.
package install
