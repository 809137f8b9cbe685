// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readyourwrites provides the client of controllers that rely on their own writes. It reads
// from a manager's cache, and waits until the cache has seen everything that was written through
// the client.
//
// controller-runtime does the waiting, without a limit. An event that never arrives would silently
// block each read of that kind, and with it all leader-elected controllers. There are two such
// cases. First, the deleted object is another one than was read, with the same name, whose deletion
// the cache has reported long before; deletes by UID prevent that. Second, a cache may list again
// after its watch has failed for long, and never report an object that was created and deleted
// meanwhile. A read that waits too long therefore ends with an error, and so does the manager: the
// next leader starts with fresh caches.
package readyourwrites
