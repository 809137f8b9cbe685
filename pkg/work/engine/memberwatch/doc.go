// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memberwatch reports which works a change on the member concerns, without polling.
//
// An agent has one watcher. Every family has a [View] of it and registers with [View.Follow] the
// objects that a work is interested in. The watcher keeps one metadata watch per resource that any
// work follows. It starts the watch for the first follower and stops it after the last one. It
// caches only key, UID, resourceVersion and generation, so that resources with many other objects
// stay cheap.
//
// Interest is by name, not by owner reference. It therefore includes objects that a work does not
// own but waits for: an object of another owner that may release it, an object that does not exist
// yet, and an object from which somebody removed the owner reference.
//
// The watcher always watches the records of all families, because a record without a work must be
// deleted. It also always watches CustomResourceDefinitions, because a work may wait for a new
// kind.
package memberwatch
