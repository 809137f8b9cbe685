// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation holds the admission rules of our own kinds as functions of
// values: they run without a server, and handlers in pkg/webhook only call them.
//
// What a schema or a CEL rule in the CustomResourceDefinition can say is said
// there. Here is what needs the older object in full, other kinds, or sets that
// CEL cannot afford. Every function returns all errors at once, with their paths.
package validation
