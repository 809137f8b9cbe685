// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Grace is how long a cache, or a watch, that has not seen one of our writes yet is
// taken for late. After that it is believed: who was restored from a backup counts from
// an earlier number.
const Grace = 10 * time.Second

// Sighting is what the watch knows of an object.
type Sighting struct {
	// Version is the resourceVersion of the object as the watch saw it last; empty if
	// it was not there.
	Version string
	// Reached is a resourceVersion up to which the watch has seen every change of the
	// resource. Empty: it knows nothing, for it has not begun or may not watch.
	Reached string
}

// Absent reports whether the watch knows that the object is not there.
func (s Sighting) Absent() bool { return s.Reached != "" && s.Version == "" }

// IsAsLeft reports whether an object is, by the watch, as it was when it had a
// resourceVersion, which was at a time: the watch shows just that, or has not come as far
// and will tell of all that happened afterwards. The latter is believed only for [Grace].
func (s Sighting) IsAsLeft(resourceVersion string, at, now time.Time) bool {
	if resourceVersion == "" {
		return false
	}
	if s.Version == resourceVersion {
		return true
	}
	return now.Sub(at) <= Grace && IsOlder(s.Reached, resourceVersion) &&
		(s.Version == "" || IsOlder(s.Version, resourceVersion))
}

// IsOlder compares two resourceVersions of one resource; false if they cannot be
// compared.
func IsOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
