// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// PlaceAnnotation is on an object of the hub. Its author writes it to control whether placements
// select the object: PlaceSkip or PlaceAlways. If unset, placements select the object unless a
// controller of the hub created it. On a Namespace, PlaceSkip also excludes its contents.
const PlaceAnnotation = "fleetgate.io/placement"

const (
	// PlaceSkip excludes an object from all placements.
	PlaceSkip = "Skip"
	// PlaceAlways includes an object that a controller of the hub created.
	PlaceAlways = "Place"
)

// PlaceFinalizersAnnotation with the value "true" on an object of the hub places its finalizers
// too. If unset, they are not placed, because the controllers that remove them run on the hub.
const PlaceFinalizersAnnotation = "fleetgate.io/place-finalizers"
