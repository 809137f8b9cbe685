// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memberwatch tells which works are touched by a change on the member,
// within a moment of it and without polling.
//
// There is one for each agent: every family of works has a [View] of it and names the
// objects that a work is interested in with [View.Follow]. The watcher keeps one
// metadata watch for each resource that at least one work of any family
// is interested in, starts it when the first asks and stops it when the last no
// longer does. Of every object it keeps only the key, UID, resourceVersion and
// generation, so that watching a resource with many foreign objects stays
// cheap.
//
// Interest goes by name and not by owner reference. It covers what a work owns
// and also what it does not own and waits for: an object that another owner
// holds and may release, one that does not exist yet, one from which somebody
// removed the owner reference.
//
// The records that families keep of their works are always watched, because one without
// a work has to go, and CustomResourceDefinitions, because a new kind may be what a
// work waits for.
package memberwatch
