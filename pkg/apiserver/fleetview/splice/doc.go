// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package splice merges several lists into one. It cuts the items out of each member's reply as the
// bytes come in, marks their member, and passes them on. It is pure: it reads from a reader and
// writes to a writer, and does not use the network.
//
// Items are not decoded into objects. Only the position of their metadata is searched; everything
// else passes as the member wrote it, including fields of future versions. Of a reply, one item,
// the head and the metadata are buffered, each within a limit.
//
// Members are not trusted. Each item must be valid JSON on its own, so that no reply can end the
// list of all members early. A duplicate key that matters here, which two readers would understand
// differently, is an error. The label that names the member replaces one that the member has set.
package splice
