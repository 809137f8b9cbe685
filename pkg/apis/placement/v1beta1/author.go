// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AuthorMayAnnotation is on a placement whose author was asked for what it selects: it
// says who that was and what they may have delivered, as JSON (selection.Bound). Only
// the gateway writes it, at admission; whatever else is written there is replaced by
// an answer about whoever wrote it. Nothing beyond it is selected. A placement without
// it is older than the question, or was written past it.
const AuthorMayAnnotation = "fleetgate.io/author-may"

// PlaceVerb is the verb, on any resource, that lets somebody have it delivered to
// members who may not read it.
const PlaceVerb = "place"

const (
	// ConditionAuthorNotAsked is True on a placement without AuthorMayAnnotation on a
	// hub where authors are asked. It keeps what it selects.
	ConditionAuthorNotAsked = "AuthorNotAsked"
	// ReasonNoAnswer is of ConditionAuthorNotAsked.
	ReasonNoAnswer = "NoAnswer"

	// ConditionResourcesWithheld is True on a placement that selects something on the
	// hub that its author was not asked about, and that is therefore not placed.
	ConditionResourcesWithheld = "ResourcesWithheld"
	// ReasonAuthorMayNot is of ConditionResourcesWithheld.
	ReasonAuthorMayNot = "AuthorMayNot"

	// ConditionResourcesUnreadable is True on a placement that selects kinds, or
	// namespaces that may hold kinds, which cannot be read.
	ConditionResourcesUnreadable = "ResourcesUnreadable"
	// ReasonGatewayMayNot is of ConditionResourcesUnreadable: the gateway lacks the right.
	ReasonGatewayMayNot = "GatewayMayNot"
	// ReasonKindUnavailable is of ConditionResourcesUnreadable: the hub itself cannot read a kind,
	// whose conversion webhook or API server does not answer.
	ReasonKindUnavailable = "KindUnavailable"

	// ConditionResourcesTooLarge is True on a placement that selects objects which no resource
	// snapshot can hold. Members keep what they have of these.
	ConditionResourcesTooLarge = "ResourcesTooLarge"
	// ReasonObjectTooLarge is of ConditionResourcesTooLarge.
	ReasonObjectTooLarge = "ObjectTooLarge"

	// PlaceableLabel, with the value "true", makes a ClusterRole part of what the gateway may
	// read where that is narrowed.
	PlaceableLabel = "fleetgate.io/aggregate-to-placeable"
)
