// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memberwatch tells which Works are touched by a change on the member,
// within a moment of it and without polling.
//
// A Work names the objects that it is interested in with [Watcher.Follow]; the
// watcher keeps one metadata informer for each resource that at least one Work
// is interested in, starts it when the first asks and stops it when the last no
// longer does. Of every object it keeps only the key, UID, resourceVersion and
// generation, so that watching a resource with many foreign objects stays
// cheap.
//
// Interest goes by name and not by owner reference. It covers what a Work owns
// and also what it does not own and waits for: an object that another owner
// holds and may release, one that does not exist yet, one from which somebody
// removed the owner reference.
//
// Two resources are always watched: AppliedWorks, because one without a Work
// has to go, and CustomResourceDefinitions, because a new kind may be what a
// Work waits for.
package memberwatch
