// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DisableAnnotation with the value true on a Placement freezes its decisions.
const DisableAnnotation = GroupName + "/experimental-scheduling-disable"

// Condition types of a Placement, in their order in the status.
const (
	// ConditionMisconfigured is True when a part of the spec cannot be evaluated; the message
	// starts with the name of the part that failed.
	ConditionMisconfigured = "PlacementMisconfigured"
	// ConditionSatisfied is True when the requested number of clusters was selected.
	ConditionSatisfied = "PlacementSatisfied"
)

// Reasons of PlacementMisconfigured.
const (
	// ReasonMisconfigured goes with True.
	ReasonMisconfigured = "Misconfigured"
	// ReasonSucceedconfigured goes with False.
	ReasonSucceedconfigured = "Succeedconfigured"
)

// Reasons of PlacementSatisfied.
const (
	// ReasonAllDecisionsScheduled goes with True.
	ReasonAllDecisionsScheduled = "AllDecisionsScheduled"
	// ReasonNoManagedClusterSetBindings goes with False: no set is bound to the namespace.
	ReasonNoManagedClusterSetBindings = "NoManagedClusterSetBindings"
	// ReasonNoIntersection goes with False: none of the sets in the spec is bound to the namespace.
	ReasonNoIntersection = "NoIntersection"
	// ReasonAllManagedClusterSetsEmpty goes with False: the sets have no clusters.
	ReasonAllManagedClusterSetsEmpty = "AllManagedClusterSetsEmpty"
	// ReasonNoManagedClusterMatched goes with False: no cluster matches.
	ReasonNoManagedClusterMatched = "NoManagedClusterMatched"
	// ReasonNotAllDecisionsScheduled goes with False: fewer clusters match than requested.
	ReasonNotAllDecisionsScheduled = "NotAllDecisionsScheduled"
)

// Reasons of events about a Placement. Each event refers to a PlacementDecision.
const (
	// EventDecisionCreate reports that a decision was created.
	EventDecisionCreate = "DecisionCreate"
	// EventDecisionUpdate reports that clusters were added or removed.
	EventDecisionUpdate = "DecisionUpdate"
	// EventDecisionDelete reports that a decision was deleted.
	EventDecisionDelete = "DecisionDelete"
	// EventScoreUpdate reports the scores of clusters.
	EventScoreUpdate = "ScoreUpdate"
)

// Values of a Placement's spec.
const (
	// SortByClusterName and SortByScore are values of sortBy.
	SortByClusterName = "ClusterName"
	SortByScore       = "Score"
	// ModeAdditive and ModeExact are values of prioritizerPolicy.mode.
	ModeAdditive = "Additive"
	ModeExact    = "Exact"
	// CoordinateBuiltIn and CoordinateAddOn are types of a scoreCoordinate.
	CoordinateBuiltIn = "BuiltIn"
	CoordinateAddOn   = "AddOn"
	// TopologyLabel and TopologyClaim are types of a topologyKey.
	TopologyLabel = "Label"
	TopologyClaim = "Claim"
	// DoNotSchedule and ScheduleAnyway are values of whenUnsatisfiable.
	DoNotSchedule  = "DoNotSchedule"
	ScheduleAnyway = "ScheduleAnyway"
	// OperatorExists and OperatorEqual are operators of tolerations.
	OperatorExists = "Exists"
	OperatorEqual  = "Equal"
)
