// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Placement selects clusters from the cluster sets that are bound to its namespace.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced
// +kubebuilder:storageversion
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Succeeded",type="string",JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].status`
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=`.status.conditions[?(@.type=="PlacementSatisfied")].reason`
// +kubebuilder:printcolumn:name="SelectedClusters",type="integer",JSONPath=`.status.numberOfSelectedClusters`
type Placement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is how clusters are selected.
	Spec PlacementSpec `json:"spec"`
	// status is the result.
	// +optional
	Status PlacementStatus `json:"status,omitzero"`
}

// PlacementSpec is how clusters are selected.
type PlacementSpec struct {
	// clusterSets to select from. If unset, all that are bound to the namespace.
	// +optional
	ClusterSets []string `json:"clusterSets,omitempty"`
	// numberOfClusters to select. If unset, all that match.
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// predicates are alternatives: a cluster must match one. If unset, all match.
	// +optional
	Predicates []ClusterPredicate `json:"predicates,omitempty"`
	// prioritizerPolicy ranks the clusters that match.
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy,omitzero"`
	// spreadPolicy spreads the selected clusters.
	// +optional
	SpreadPolicy SpreadPolicy `json:"spreadPolicy,omitzero"`
	// tolerations allow clusters with matching taints.
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// decisionStrategy sets how decisions are grouped.
	// +optional
	DecisionStrategy DecisionStrategy `json:"decisionStrategy,omitzero"`
	// sortBy is the order of clusters in decisions: ClusterName, or Score, highest first; with
	// Score, decisions include the scores.
	// +kubebuilder:default=ClusterName
	// +kubebuilder:validation:Enum=ClusterName;Score
	// +optional
	SortBy string `json:"sortBy,omitempty"`
	// scoreRateLimit is the minimum interval between updates of decisions, with sortBy Score, for
	// which only scores changed: a number with h, m or s.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Pattern=`^[0-9]+[hms]$`
	// +optional
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
}

// ClusterPredicate is one alternative.
type ClusterPredicate struct {
	// requiredClusterSelector is the selector that a cluster must match.
	// +optional
	RequiredClusterSelector ClusterSelector `json:"requiredClusterSelector,omitzero"`
}

// ClusterSelector selects clusters that match all of its fields.
type ClusterSelector struct {
	// labelSelector matches labels of ManagedClusters.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitzero"`
	// claimSelector matches their claims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitzero"`
	// celSelector matches the ManagedCluster by CEL expressions.
	// +optional
	CELSelector ClusterCELSelector `json:"celSelector,omitzero"`
}

// ClusterClaimSelector matches claims.
type ClusterClaimSelector struct {
	// matchExpressions must all match.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCELSelector matches the ManagedCluster by CEL expressions.
type ClusterCELSelector struct {
	// celExpressions on the variable managedCluster, which must all be true.
	// +optional
	CELExpressions []string `json:"celExpressions,omitempty"`
}

// PrioritizerPolicy ranks clusters.
type PrioritizerPolicy struct {
	// mode is Additive (Balance and Steady have weight 1 unless configurations override it) or
	// Exact (only configurations count).
	// +kubebuilder:default=Additive
	// +optional
	Mode string `json:"mode,omitempty"`
	// configurations are the weights of scores.
	// +optional
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerConfig is the weight of a score.
type PrioritizerConfig struct {
	// scoreCoordinate identifies the score.
	ScoreCoordinate ScoreCoordinate `json:"scoreCoordinate"`
	// weight of the score; 0 disables it. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=10
	// +optional
	Weight int32 `json:"weight,omitempty"`
}

// ScoreCoordinate identifies a score.
type ScoreCoordinate struct {
	// type is BuiltIn or AddOn.
	// +kubebuilder:default=BuiltIn
	// +kubebuilder:validation:Enum=BuiltIn;AddOn
	Type string `json:"type"`
	// builtIn is the name of the score, for type BuiltIn: Balance, Steady, ResourceAllocatableCPU
	// or ResourceAllocatableMemory.
	// +optional
	BuiltIn string `json:"builtIn,omitempty"`
	// addOn identifies the score, for type AddOn.
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// AddOnScore identifies a score of an AddOnPlacementScore.
type AddOnScore struct {
	// resourceName is the name of the AddOnPlacementScores, one in each cluster's namespace.
	ResourceName string `json:"resourceName"`
	// scoreName is the name of the score in it.
	ScoreName string `json:"scoreName"`
}

// SpreadPolicy spreads clusters.
type SpreadPolicy struct {
	// spreadConstraints are the constraints, at most 8.
	// +kubebuilder:validation:MaxItems=8
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`
}

// SpreadConstraint limits how unevenly clusters are spread.
type SpreadConstraint struct {
	// topologyKey is the label or claim whose values form the groups.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:MaxLength=316
	TopologyKey string `json:"topologyKey"`
	// topologyKeyType is Label or Claim.
	// +kubebuilder:validation:Enum=Label;Claim
	TopologyKeyType string `json:"topologyKeyType"`
	// maxSkew is the maximum difference in clusters between two groups. Default 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// whenUnsatisfiable is DoNotSchedule or ScheduleAnyway. Default ScheduleAnyway.
	// +kubebuilder:default=ScheduleAnyway
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	// +optional
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty"`
}

// Toleration allows clusters with a matching taint.
type Toleration struct {
	// key of the taint. If unset, with operator Exists, matches any.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	// +optional
	Key string `json:"key,omitempty"`
	// operator is Exists or Equal. Default Equal.
	// +kubebuilder:default=Equal
	// +optional
	Operator string `json:"operator,omitempty"`
	// value of the taint, for operator Equal.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
	// effect of the taint. If unset, matches any.
	// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
	// +optional
	Effect string `json:"effect,omitempty"`
	// tolerationSeconds is how long after the taint was added it is tolerated. If unset,
	// indefinitely.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// DecisionStrategy sets how decisions are grouped.
type DecisionStrategy struct {
	// groupStrategy sets the decision groups.
	// +optional
	GroupStrategy GroupStrategy `json:"groupStrategy,omitzero"`
}

// GroupStrategy sets the decision groups.
type GroupStrategy struct {
	// decisionGroups are the named groups. They come first, in this order.
	// +optional
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`
	// clustersPerDecisionGroup is the maximum number of clusters in a group: a number or a
	// percentage. Default 100%.
	// +kubebuilder:default="100%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$`
	// +optional
	ClustersPerDecisionGroup intstr.IntOrString `json:"clustersPerDecisionGroup,omitzero"`
}

// DecisionGroup is a named group.
type DecisionGroup struct {
	// groupName is the name of the group.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`
	GroupName string `json:"groupName"`
	// groupClusterSelector selects which of the selected clusters are in it.
	GroupClusterSelector GroupClusterSelector `json:"groupClusterSelector"`
}

// GroupClusterSelector selects the clusters of a group.
type GroupClusterSelector struct {
	// labelSelector matches labels of ManagedClusters.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitzero"`
	// claimSelector matches their claims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitzero"`
}

// PlacementStatus is the result of a Placement.
type PlacementStatus struct {
	// numberOfSelectedClusters is the number of selected clusters.
	// +optional
	NumberOfSelectedClusters int32 `json:"numberOfSelectedClusters,omitempty"`
	// decisionGroups are the resulting groups.
	// +optional
	DecisionGroups []DecisionGroupStatus `json:"decisionGroups,omitempty"`
	// conditions are PlacementMisconfigured and PlacementSatisfied.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastScoreUpdateTime is when scores were last written.
	// +optional
	LastScoreUpdateTime *metav1.Time `json:"lastScoreUpdateTime,omitempty"`
}

// DecisionGroupStatus is a resulting group.
type DecisionGroupStatus struct {
	// decisionGroupIndex is the index of the group.
	// +optional
	DecisionGroupIndex int32 `json:"decisionGroupIndex,omitempty"`
	// decisionGroupName is the name of the group, if it has one.
	// +optional
	DecisionGroupName string `json:"decisionGroupName,omitempty"`
	// decisions are the names of its PlacementDecisions.
	// +optional
	Decisions []string `json:"decisions,omitempty"`
	// clusterCount is the number of its clusters.
	// +kubebuilder:default=0
	// +optional
	ClustersCount int32 `json:"clusterCount,omitempty"`
}

// PlacementList is a list of Placements.
//
// +kubebuilder:object:root=true
type PlacementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Placement `json:"items"`
}
