// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// CacheDelay is the time for a cache to receive our own write.
const CacheDelay = 50 * time.Millisecond

// OwnWrite is our last write of a work on the hub. The zero value means none.
type OwnWrite struct {
	// version is the resourceVersion after the write.
	version string
	at      time.Time
}

// Note records a write and its resourceVersion.
func (w *OwnWrite) Note(resourceVersion string, now time.Time) {
	w.version, w.at = resourceVersion, now
}

// IsBehind reports whether a work is older than our last write because the cache has not received
// it yet. A hub restored from a backup also has lower resourceVersions, so the answer is true for a
// limited time only.
func (w *OwnWrite) IsBehind(resourceVersion string, now time.Time) bool {
	return now.Sub(w.at) <= memberwatch.Grace && memberwatch.IsOlder(resourceVersion, w.version)
}
