// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DisableAnnotation, on a Placement, with the value true, leaves its decisions as they are.
const DisableAnnotation = GroupName + "/experimental-scheduling-disable"

// Condition types of a Placement, in the order in which they stand in its status.
const (
	// ConditionMisconfigured is True when something in the spec cannot be carried out; the
	// message begins with what looked at it.
	ConditionMisconfigured = "PlacementMisconfigured"
	// ConditionSatisfied is True when as many clusters were found as are wanted.
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
	// ReasonNoIntersection goes with False: none of the sets that it names is.
	ReasonNoIntersection = "NoIntersection"
	// ReasonAllManagedClusterSetsEmpty goes with False: there is no cluster in the sets.
	ReasonAllManagedClusterSetsEmpty = "AllManagedClusterSetsEmpty"
	// ReasonNoManagedClusterMatched goes with False: no cluster fits.
	ReasonNoManagedClusterMatched = "NoManagedClusterMatched"
	// ReasonNotAllDecisionsScheduled goes with False: fewer clusters fit than are wanted.
	ReasonNotAllDecisionsScheduled = "NotAllDecisionsScheduled"
)

// Reasons of events about a Placement; each is related to a PlacementDecision.
const (
	// EventDecisionCreate is that one was made.
	EventDecisionCreate = "DecisionCreate"
	// EventDecisionUpdate is that clusters came to it or left it.
	EventDecisionUpdate = "DecisionUpdate"
	// EventDecisionDelete is that one was removed.
	EventDecisionDelete = "DecisionDelete"
	// EventScoreUpdate tells what clusters were given.
	EventScoreUpdate = "ScoreUpdate"
)

// Values of a Placement's spec.
const (
	// SortByClusterName and SortByScore are of sortBy.
	SortByClusterName = "ClusterName"
	SortByScore       = "Score"
	// ModeAdditive and ModeExact are of prioritizerPolicy.mode.
	ModeAdditive = "Additive"
	ModeExact    = "Exact"
	// CoordinateBuiltIn and CoordinateAddOn are types of a scoreCoordinate.
	CoordinateBuiltIn = "BuiltIn"
	CoordinateAddOn   = "AddOn"
	// TopologyLabel and TopologyClaim are types of a topologyKey.
	TopologyLabel = "Label"
	TopologyClaim = "Claim"
	// DoNotSchedule and ScheduleAnyway are of whenUnsatisfiable.
	DoNotSchedule  = "DoNotSchedule"
	ScheduleAnyway = "ScheduleAnyway"
	// OperatorExists and OperatorEqual are of tolerations.
	OperatorExists = "Exists"
	OperatorEqual  = "Equal"
)
