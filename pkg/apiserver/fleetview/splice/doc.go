// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splice makes one list of several: it cuts the items out of each member's
// reply as the bytes come in, marks whose they are, and passes them on. It is pure: it
// reads from a reader and writes to a writer, and knows no network.
//
// No item is decoded into an object. Of its bytes, only where its metadata lies is looked
// for; everything else passes as the member wrote it, fields of versions to come among it.
// What is held of a reply is one item, its head and its metadata, each bounded.
//
// A member is not trusted. Each item must be JSON of its own, so that no reply can end the
// list of all members early; a key of interest that is there twice, which two readers
// would understand differently, is an error; and the label that says whose an object is
// replaces one that the member put there.
package splice
