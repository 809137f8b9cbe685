// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Grace is how long a cache or watch that lacks one of our writes is assumed to lag. After that its
// state counts as current: a cluster restored from a backup has lower resourceVersions.
const Grace = 10 * time.Second

// Observation is the state of an object according to the watch.
type Observation struct {
	// Version is the last seen resourceVersion of the object; empty if the object does not exist.
	Version string
	// Reached is the resourceVersion up to which the watch has seen all changes of the resource. It
	// is empty if the watch has not started or is forbidden; then nothing is known.
	Reached string
}

// Absent reports whether the watch knows that the object does not exist.
func (s Observation) Absent() bool { return s.Reached != "" && s.Version == "" }

// IsUnchangedSince reports whether an object is unchanged since it had this resourceVersion, at a time.
// Either the watch shows that version, or the watch lags and will report later changes. A lag is
// assumed only for [Grace].
func (s Observation) IsUnchangedSince(resourceVersion string, at, now time.Time) bool {
	if resourceVersion == "" {
		return false
	}
	if s.Version == resourceVersion {
		return true
	}
	return now.Sub(at) <= Grace && IsOlder(s.Reached, resourceVersion) &&
		(s.Version == "" || IsOlder(s.Version, resourceVersion))
}

// IsOlder compares two resourceVersions of one resource. It is false if they are not comparable.
func IsOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
