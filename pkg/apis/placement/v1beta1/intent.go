// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// PlaceAnnotation is on an object of the hub whose author decides whether placements select it:
// PlaceSkip or PlaceAlways. Without it the object is selected unless a controller of the hub made
// it. On a Namespace, PlaceSkip leaves out what is in it too.
const PlaceAnnotation = "fleetgate.io/placement"

const (
	// PlaceSkip leaves an object out of all placements.
	PlaceSkip = "Skip"
	// PlaceAlways selects an object that a controller of the hub made.
	PlaceAlways = "Place"
)

// PlaceFinalizersAnnotation, with the value "true", is on an object of the hub whose finalizers are
// placed. Without it they stay on the hub: the controllers that remove them run there.
const PlaceFinalizersAnnotation = "fleetgate.io/place-finalizers"
