// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementPolicy selects members.
//
// +kubebuilder:validation:XValidation:rule="self.placementType == oldSelf.placementType",message="placement type is immutable"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickFixed' || !(has(self.affinity) || has(self.numberOfClusters) || has(self.topologySpreadConstraints) || has(self.tolerations))",message="affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickAll' || !(has(self.clusterNames) || has(self.numberOfClusters) || has(self.topologySpreadConstraints))",message="clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickN' || (has(self.numberOfClusters) && !has(self.clusterNames))",message="clusterNames cannot be set and numberOfClusters must be set when placementType is PickN"
type PlacementPolicy struct {
	// placementType is how members are selected. Default PickAll. Immutable.
	//
	// +optional
	// +kubebuilder:default=PickAll
	PlacementType PlacementType `json:"placementType,omitempty"`

	// clusterNames are the members of a PickFixed placement, at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	ClusterNames []string `json:"clusterNames,omitempty"`

	// numberOfClusters is how many members a PickN placement selects.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// affinity filters and ranks members by labels and properties.
	//
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints spread a PickN placement across groups of members.
	//
	// +optional
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// tolerations allow members with matching taints. Entries can be added but not changed; at most
	// 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.operator != 'Exists' || !has(t.value) || size(t.value) == 0)",message="value must be empty when operator is Exists"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.operator == 'Exists' || (has(t.key) && size(t.key) > 0))",message="operator must be Exists when key is empty"
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// PlacementType is how members are selected.
//
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PlacementType string

const (
	// PickAll selects all members that match.
	PickAll PlacementType = "PickAll"
	// PickN selects a number of members, the highest ranked first.
	PickN PlacementType = "PickN"
	// PickFixed selects members by name.
	PickFixed PlacementType = "PickFixed"
)

// Affinity filters and ranks members.
type Affinity struct {
	// clusterAffinity has rules for labels and properties of members.
	//
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity has rules for labels and properties of members.
type ClusterAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution filters members when they are picked; it is
	// not evaluated afterwards. If unset, all members match.
	//
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution ranks members by the sum of the weights of
	// the terms that they match.
	//
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector selects members that match at least one term.
type ClusterSelector struct {
	// clusterSelectorTerms are alternatives, at most 10. If unset, all members match.
	//
	// +required
	// +kubebuilder:validation:MaxItems=10
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// PreferredClusterSelector adds a weight to members that match a term.
type PreferredClusterSelector struct {
	// weight to add, -100 to 100. With a property sorter, the best member gets the full weight and
	// the others a fraction.
	//
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// preference is the term.
	//
	// +required
	Preference ClusterSelectorTerm `json:"preference"`
}

// ClusterSelectorTerm matches a member that meets every field that is set.
type ClusterSelectorTerm struct {
	// labelSelector matches the labels of the MemberCluster.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// propertySelector matches its properties; for required terms only.
	//
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`

	// propertySorter ranks by one property; for preferred terms only.
	//
	// +optional
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// PropertySelector selects members by their properties.
type PropertySelector struct {
	// matchExpressions must all match.
	//
	// +required
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// PropertySelectorRequirement compares a property of a member with a value. A member without the
// property does not match.
type PropertySelectorRequirement struct {
	// name of the property: a key of the MemberCluster's status.properties, or
	// ResourcePropertyPrefix followed by total-, allocatable- or available- and a resource name.
	//
	// +required
	Name string `json:"name"`

	// operator is Gt, Ge, Eq, Ne, Lt or Le.
	//
	// +required
	Operator PropertySelectorOperator `json:"operator"`

	// values has exactly one quantity to compare with.
	//
	// +required
	// +kubebuilder:validation:MaxItems=1
	Values []string `json:"values"`
}

// ResourcePropertyPrefix is the prefix of property names for resources in a member's
// status.resourceUsage.
const ResourcePropertyPrefix = "resources.kubernetes-fleet.io/"

// PropertySelectorOperator compares a property with a value.
type PropertySelectorOperator string

// Operators of a property selector: greater than, greater or equal, equal, not equal, less than,
// less or equal.
const (
	PropertySelectorGreaterThan      PropertySelectorOperator = "Gt"
	PropertySelectorGreaterOrEqualTo PropertySelectorOperator = "Ge"
	PropertySelectorEqualTo          PropertySelectorOperator = "Eq"
	PropertySelectorNotEqualTo       PropertySelectorOperator = "Ne"
	PropertySelectorLessThan         PropertySelectorOperator = "Lt"
	PropertySelectorLessOrEqualTo    PropertySelectorOperator = "Le"
)

// PropertySorter ranks members by one property.
type PropertySorter struct {
	// name of the property, as in PropertySelectorRequirement.
	//
	// +required
	Name string `json:"name"`

	// sortOrder is Descending (largest value is best) or Ascending (smallest value is best).
	//
	// +required
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PropertySortOrder is which value ranks best.
//
// +kubebuilder:validation:Enum=Ascending;Descending
type PropertySortOrder string

const (
	// Ascending ranks the smallest value first.
	Ascending PropertySortOrder = "Ascending"
	// Descending ranks the largest value first.
	Descending PropertySortOrder = "Descending"
)

// TopologySpreadConstraint limits how unevenly a PickN placement is spread across groups of
// members.
type TopologySpreadConstraint struct {
	// maxSkew is the maximum difference in members between the largest and the smallest group: at
	// least 1, default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxSkew *int32 `json:"maxSkew,omitempty"`

	// topologyKey is the label whose value is a member's group. Members without it are in no group.
	//
	// +required
	TopologyKey string `json:"topologyKey"`

	// whenUnsatisfiable sets what happens if the constraint cannot be met. Default DoNotSchedule.
	//
	// +optional
	// +kubebuilder:default=DoNotSchedule
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// UnsatisfiableConstraintAction is what happens if a spread constraint cannot be met.
//
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableConstraintAction string

const (
	// DoNotSchedule excludes the member.
	DoNotSchedule UnsatisfiableConstraintAction = "DoNotSchedule"
	// ScheduleAnyway ranks the member lower.
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// Toleration allows a member with a matching taint.
type Toleration struct {
	// key of the taint. If unset, with operator Exists, matches every taint.
	//
	// +optional
	Key string `json:"key,omitempty"`

	// operator is Equal (same value) or Exists (any value). Default Equal.
	//
	// +optional
	// +kubebuilder:default=Equal
	// +kubebuilder:validation:Enum=Equal;Exists
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// value of the taint; must be empty with operator Exists.
	//
	// +optional
	Value string `json:"value,omitempty"`

	// effect of the taint. If unset, matches every effect.
	//
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}
