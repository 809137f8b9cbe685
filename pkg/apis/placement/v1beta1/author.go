// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AuthorMayAnnotation is on a placement whose author was checked at admission. Its value is JSON
// (selection.Bound): the author, and the resources that this author is allowed to place. Only the
// gateway writes it, at admission: it replaces any value that a client writes with the result for
// that client. The placement selects nothing else. A placement without it is older than the check,
// or bypassed admission.
const AuthorMayAnnotation = "fleetgate.io/author-may"

// PlaceVerb is the RBAC verb that allows a user to place a resource that the user cannot read.
const PlaceVerb = "place"

const (
	// ConditionAuthorCheckSkipped is True on a placement without AuthorMayAnnotation, on a hub that
	// checks authors. The placement keeps the resources that it selects.
	ConditionAuthorCheckSkipped = "AuthorCheckSkipped"
	// ReasonAuthorUnknown is a reason of ConditionAuthorCheckSkipped.
	ReasonAuthorUnknown = "AuthorUnknown"

	// ConditionResourcesWithheld is True on a placement that selects resources its author is not
	// allowed to place. These resources are not placed.
	ConditionResourcesWithheld = "ResourcesWithheld"
	// ReasonAuthorForbidden is a reason of ConditionResourcesWithheld.
	ReasonAuthorForbidden = "AuthorForbidden"

	// ConditionResourcesUnreadable is True on a placement that selects kinds, or namespaces that
	// can contain kinds, which cannot be read.
	ConditionResourcesUnreadable = "ResourcesUnreadable"
	// ReasonGatewayForbidden is a reason of ConditionResourcesUnreadable: RBAC forbids the gateway to
	// read the kind.
	ReasonGatewayForbidden = "GatewayForbidden"
	// ReasonKindUnavailable is a reason of ConditionResourcesUnreadable: the hub cannot read the
	// kind, because its conversion webhook or API server does not respond.
	ReasonKindUnavailable = "KindUnavailable"

	// ConditionResourcesTooLarge is True on a placement that selects objects too large for a
	// resource snapshot. Members keep the version of these objects that they have.
	ConditionResourcesTooLarge = "ResourcesTooLarge"
	// ReasonObjectTooLarge is a reason of ConditionResourcesTooLarge.
	ReasonObjectTooLarge = "ObjectTooLarge"

	// PlaceableLabel with the value "true" adds the rules of a ClusterRole to the resources that
	// the gateway can read, on hubs that restrict these.
	PlaceableLabel = "fleetgate.io/aggregate-to-placeable"
)
