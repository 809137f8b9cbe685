// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads the manifests in a work. It has no side effects, no client and no clock.
//
// Functions, in the order of use:
//
//   - [Decode] decodes the embedded JSON into one object, or returns why it is invalid. It limits the size and
//     drops fields that only an API server sets.
//   - [Identify] and [KeyOf] identify the object, for reports and to compare two versions of a work.
//   - [Encode] and [Hash] show whether two manifests are equal.
//   - [Wave] orders kinds by their dependencies.
//
// It knows no cluster: the caller passes the resource of a kind.
package manifest
