// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// CacheDelay is how long a cache is given to see our own write.
const CacheDelay = 50 * time.Millisecond

// OwnWrite is our last write of a work on the hub. The zero value is none.
type OwnWrite struct {
	// version is the resourceVersion that it made.
	version string
	at      time.Time
}

// Note remembers a write that made a resourceVersion.
func (w *OwnWrite) Note(resourceVersion string, now time.Time) {
	w.version, w.at = resourceVersion, now
}

// IsBehind reports whether a work is as it was before our last write, since the cache has
// not seen it yet. A hub that was restored from a backup counts from an earlier number, so
// that is believed for a while only.
func (w *OwnWrite) IsBehind(resourceVersion string, now time.Time) bool {
	return now.Sub(w.at) <= memberwatch.Grace && memberwatch.IsOlder(resourceVersion, w.version)
}
