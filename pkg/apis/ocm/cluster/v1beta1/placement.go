// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Placement says what clusters have to be like that something is for. They are chosen
// from the cluster sets that are bound to its namespace.
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

	// spec is what clusters have to be like.
	Spec PlacementSpec `json:"spec"`
	// status says what came of it.
	// +optional
	Status PlacementStatus `json:"status,omitzero"`
}

// PlacementSpec is what clusters have to be like.
type PlacementSpec struct {
	// clusterSets are those to choose from. Empty: all that are bound to the namespace.
	// +optional
	ClusterSets []string `json:"clusterSets,omitempty"`
	// numberOfClusters is how many to choose. Empty: all that fit.
	// +optional
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`
	// predicates are alternatives: a cluster fits that fits one of them. Empty: all do.
	// +optional
	Predicates []ClusterPredicate `json:"predicates,omitempty"`
	// prioritizerPolicy is which of those that fit come first.
	// +optional
	PrioritizerPolicy PrioritizerPolicy `json:"prioritizerPolicy,omitzero"`
	// spreadPolicy is how those that are chosen are spread.
	// +optional
	SpreadPolicy SpreadPolicy `json:"spreadPolicy,omitzero"`
	// tolerations let clusters fit that are tainted.
	// +optional
	Tolerations []Toleration `json:"tolerations,omitempty"`
	// decisionStrategy is how decisions are grouped.
	// +optional
	DecisionStrategy DecisionStrategy `json:"decisionStrategy,omitzero"`
	// sortBy is in which order clusters stand in decisions: by ClusterName, or by Score, the
	// highest first; then decisions tell the scores.
	// +kubebuilder:default=ClusterName
	// +kubebuilder:validation:Enum=ClusterName;Score
	// +optional
	SortBy string `json:"sortBy,omitempty"`
	// scoreRateLimit is how long after decisions were written they are written again, with
	// sortBy Score, because of nothing but scores: a number with h, m or s.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Pattern=`^[0-9]+[hms]$`
	// +optional
	ScoreRateLimit string `json:"scoreRateLimit,omitempty"`
}

// ClusterPredicate is one alternative.
type ClusterPredicate struct {
	// requiredClusterSelector is what a cluster has to be like.
	// +optional
	RequiredClusterSelector ClusterSelector `json:"requiredClusterSelector,omitzero"`
}

// ClusterSelector selects clusters. All of its parts have to hold.
type ClusterSelector struct {
	// labelSelector is over the labels of ManagedClusters.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitzero"`
	// claimSelector is over their claims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitzero"`
	// celSelector is over the ManagedCluster itself.
	// +optional
	CELSelector ClusterCELSelector `json:"celSelector,omitzero"`
}

// ClusterClaimSelector is over claims.
type ClusterClaimSelector struct {
	// matchExpressions all have to hold.
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// ClusterCELSelector is over the ManagedCluster.
type ClusterCELSelector struct {
	// celExpressions, over the variable managedCluster, all have to be true.
	// +optional
	CELExpressions []string `json:"celExpressions,omitempty"`
}

// PrioritizerPolicy is which clusters come first.
type PrioritizerPolicy struct {
	// mode is Additive: Balance and Steady count 1 each unless configurations say otherwise,
	// or Exact: nothing counts but what they name.
	// +kubebuilder:default=Additive
	// +optional
	Mode string `json:"mode,omitempty"`
	// configurations say how much single scores count.
	// +optional
	Configurations []PrioritizerConfig `json:"configurations,omitempty"`
}

// PrioritizerConfig says how much a score counts.
type PrioritizerConfig struct {
	// scoreCoordinate names the score.
	ScoreCoordinate ScoreCoordinate `json:"scoreCoordinate"`
	// weight is how much it counts; 0 takes it away. It defaults to 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=-10
	// +kubebuilder:validation:Maximum=10
	// +optional
	Weight int32 `json:"weight,omitempty"`
}

// ScoreCoordinate names a score.
type ScoreCoordinate struct {
	// type is BuiltIn or AddOn.
	// +kubebuilder:default=BuiltIn
	// +kubebuilder:validation:Enum=BuiltIn;AddOn
	Type string `json:"type"`
	// builtIn is the score's name, with type BuiltIn: Balance, Steady, ResourceAllocatableCPU
	// or ResourceAllocatableMemory.
	// +optional
	BuiltIn string `json:"builtIn,omitempty"`
	// addOn names the score, with type AddOn.
	// +optional
	AddOn *AddOnScore `json:"addOn,omitempty"`
}

// AddOnScore names a score of an AddOnPlacementScore.
type AddOnScore struct {
	// resourceName is that of the AddOnPlacementScores, one in each cluster's namespace.
	ResourceName string `json:"resourceName"`
	// scoreName is that of the score in it.
	ScoreName string `json:"scoreName"`
}

// SpreadPolicy is how clusters are spread.
type SpreadPolicy struct {
	// spreadConstraints are the rules.
	// +kubebuilder:validation:MaxItems=8
	// +optional
	SpreadConstraints []SpreadConstraint `json:"spreadConstraints,omitempty"`
}

// SpreadConstraint is a rule of it.
type SpreadConstraint struct {
	// topologyKey is the label or claim by whose values clusters are spread.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`
	// +kubebuilder:validation:MaxLength=316
	TopologyKey string `json:"topologyKey"`
	// topologyKeyType is Label or Claim.
	// +kubebuilder:validation:Enum=Label;Claim
	TopologyKeyType string `json:"topologyKeyType"`
	// maxSkew is by how much two values may differ. It defaults to 1.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSkew int32 `json:"maxSkew,omitempty"`
	// whenUnsatisfiable is DoNotSchedule or ScheduleAnyway, which is the default.
	// +kubebuilder:default=ScheduleAnyway
	// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
	// +optional
	WhenUnsatisfiable string `json:"whenUnsatisfiable,omitempty"`
}

// Toleration lets clusters fit that have a taint.
type Toleration struct {
	// key is the taint's. Empty, with operator Exists: any.
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	// +kubebuilder:validation:MaxLength=316
	// +optional
	Key string `json:"key,omitempty"`
	// operator is Exists, or Equal, which is the default.
	// +kubebuilder:default=Equal
	// +optional
	Operator string `json:"operator,omitempty"`
	// value is the taint's, with operator Equal.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Value string `json:"value,omitempty"`
	// effect is the taint's. Empty: any.
	// +kubebuilder:validation:Enum=NoSelect;PreferNoSelect;NoSelectIfNew
	// +optional
	Effect string `json:"effect,omitempty"`
	// tolerationSeconds is for how long since the taint came. Empty: for ever.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// DecisionStrategy is how decisions are grouped.
type DecisionStrategy struct {
	// groupStrategy makes decision groups.
	// +optional
	GroupStrategy GroupStrategy `json:"groupStrategy,omitzero"`
}

// GroupStrategy makes decision groups.
type GroupStrategy struct {
	// decisionGroups are those with a name. They come first, in this order.
	// +optional
	DecisionGroups []DecisionGroup `json:"decisionGroups,omitempty"`
	// clustersPerDecisionGroup is how many clusters a group has at most, as a number or a
	// percentage. It defaults to 100%.
	// +kubebuilder:default="100%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^((100|[1-9][0-9]{0,1})%|[1-9][0-9]*)$`
	// +optional
	ClustersPerDecisionGroup intstr.IntOrString `json:"clustersPerDecisionGroup,omitzero"`
}

// DecisionGroup is a group with a name.
type DecisionGroup struct {
	// groupName is its name.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9][-A-Za-z0-9_.]{0,61}[a-zA-Z0-9]$`
	GroupName string `json:"groupName"`
	// groupClusterSelector is which of the chosen clusters are in it.
	GroupClusterSelector GroupClusterSelector `json:"groupClusterSelector"`
}

// GroupClusterSelector selects clusters of a group.
type GroupClusterSelector struct {
	// labelSelector is over the labels of ManagedClusters.
	// +optional
	LabelSelector metav1.LabelSelector `json:"labelSelector,omitzero"`
	// claimSelector is over their claims.
	// +optional
	ClaimSelector ClusterClaimSelector `json:"claimSelector,omitzero"`
}

// PlacementStatus says what came of a Placement.
type PlacementStatus struct {
	// numberOfSelectedClusters is how many clusters were chosen.
	// +optional
	NumberOfSelectedClusters int32 `json:"numberOfSelectedClusters,omitempty"`
	// decisionGroups are the groups that were made.
	// +optional
	DecisionGroups []DecisionGroupStatus `json:"decisionGroups,omitempty"`
	// conditions tell whether what was asked for was found.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// lastScoreUpdateTime is when scores were written last.
	// +optional
	LastScoreUpdateTime *metav1.Time `json:"lastScoreUpdateTime,omitempty"`
}

// DecisionGroupStatus is a group that was made.
type DecisionGroupStatus struct {
	// decisionGroupIndex is its number.
	// +optional
	DecisionGroupIndex int32 `json:"decisionGroupIndex,omitempty"`
	// decisionGroupName is its name, if it has one.
	// +optional
	DecisionGroupName string `json:"decisionGroupName,omitempty"`
	// decisions are the names of its PlacementDecisions.
	// +optional
	Decisions []string `json:"decisions,omitempty"`
	// clusterCount is how many clusters it has.
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
	// items are the placements.
	Items []Placement `json:"items"`
}
