// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the manifests that a work carries. It is pure: bytes
// and values in, values out, no client and no clock.
//
// A manifest passes through it in this order:
//
//   - [Decode] turns the embedded JSON into one object, or says why it is not
//     one. It bounds the size and drops what only an API server may set.
//   - [Identify] and [KeyOf] say which object that is, for
//     reports and for comparison across two versions of a work.
//   - [Encode] and [Hash] tell whether two manifests ask for the same.
//   - [Wave] says how early an object of a kind has to be there for others to
//     work.
//
// It does not know clusters: whether a kind exists, and what it is called in a
// URL, is handed in.
package manifest
