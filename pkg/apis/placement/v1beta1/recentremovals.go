// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// RecentRemovalsAnnotation records small removals that nobody confirmed: on the master of the latest
// group of resource snapshots those of objects, on a policy snapshot, an override snapshot and a
// ManifestWorkReplicaSet those of members. Its value is the text of RecentRemovals.
const RecentRemovalsAnnotation = "fleetgate.io/recent-removals"

// RemovalWindow is how long a removal counts together with the next ones. A script that changes one
// label after the other makes many small removals instead of a large one.
const RemovalWindow = 10 * time.Minute

// maxRecentRemovals limits the annotation to a third of what all annotations of an object may have. The
// latest removals stay.
const maxRecentRemovals = 10_000

// RecentRemovals has the times of removals by a hash of what was removed. Hashes are shorter than
// names, and only their number is reported.
//
// +kubebuilder:object:generate=false
type RecentRemovals map[string]time.Time

// ParseRecentRemovals reads the annotation. It skips removals that are older than RemovalWindow, and
// everything that is unreadable.
func ParseRecentRemovals(text string, now time.Time) RecentRemovals {
	all := RecentRemovals{}
	for entry := range strings.SplitSeq(text, ";") {
		at, hashes, _ := strings.Cut(entry, "=")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if err != nil || now.Sub(time.Unix(seconds, 0)) > RemovalWindow {
			continue
		}
		for hash := range strings.SplitSeq(hashes, ",") {
			all[hash] = time.Unix(seconds, 0)
		}
	}
	return all
}

// Add records that these were removed.
func (r RecentRemovals) Add(now time.Time, names ...string) {
	for _, name := range names {
		r[removalHash(name)] = now
	}
}

// Has reports whether this was removed.
func (r RecentRemovals) Has(name string) bool {
	_, has := r[removalHash(name)]
	return has
}

// Forget drops what exists again.
func (r RecentRemovals) Forget(names ...string) {
	if len(r) == 0 {
		return
	}
	for _, name := range names {
		delete(r, removalHash(name))
	}
}

// String is the value of the annotation: "<Unix time>=<hash>,<hash>;<Unix time>=<hash>".
func (r RecentRemovals) String() string {
	hashes := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(r[b].Compare(r[a]), strings.Compare(a, b))
	})
	var text strings.Builder
	last := int64(0)
	for i, hash := range hashes[:min(len(hashes), maxRecentRemovals)] {
		seconds := r[hash].Unix()
		switch {
		case i == 0:
			text.WriteString(strconv.FormatInt(seconds, 10) + "=" + hash)
		case seconds == last:
			text.WriteString("," + hash)
		default:
			text.WriteString(";" + strconv.FormatInt(seconds, 10) + "=" + hash)
		}
		last = seconds
	}
	return text.String()
}

func removalHash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:4])
}
