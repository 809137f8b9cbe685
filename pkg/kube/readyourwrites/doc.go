// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readyourwrites has the client of controllers that count on what they wrote: it reads
// from a manager's cache, and waits there until the cache has seen all that was written
// through it.
//
// controller-runtime does the waiting, and has no end of it: what never comes would hold up
// each read of that kind, and with it all that is led, without a word. There are two ways in
// which it never comes. An object is deleted that was another one of that name by then, whose
// own end the cache has told of long before; that is not asked for here, since what is
// deleted is named by its UID. And a cache may list anew, after its watch has failed for
// long, and so never tell of an object that came and went meanwhile. A read that waits too
// long therefore ends with an error, and so does the manager: whoever leads next has caches
// that begin with what is there.
package readyourwrites
