// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package selection finds the resources that a placement selects on the hub, and turns them into
// manifests for members.
//
// A Selector returns the manifests, in order, for a placement's selectors. Types come from discovery
// (Kinds). Candidates come from metadata watches, which a Watcher runs for exactly the types that
// placements select. Full objects are read one by one, by name, when they are needed. So the gateway's
// memory has names and labels, and no contents.
//
// The same Watcher knows which placements a changed object concerns, and queues them within
// milliseconds.
//
// Pure functions decide what is never sent (refuse.go), which fields of an object are dropped because a
// server set them (strip.go), and the order (order.go).
//
// Envelopes are selected like other objects; package snapshot opens them.
package selection
