// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PlacementPolicy chooses members.
//
// +kubebuilder:validation:XValidation:rule="self.placementType == oldSelf.placementType",message="placement type is immutable"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickFixed' || !(has(self.affinity) || has(self.numberOfClusters) || has(self.topologySpreadConstraints) || has(self.tolerations))",message="affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is PickFixed"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickAll' || !(has(self.clusterNames) || has(self.numberOfClusters) || has(self.topologySpreadConstraints))",message="clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll"
// +kubebuilder:validation:XValidation:rule="self.placementType != 'PickN' || (has(self.numberOfClusters) && !has(self.clusterNames))",message="clusterNames cannot be set and numberOfClusters must be set when placementType is PickN"
type PlacementPolicy struct {
	// placementType is the way of choosing. Default PickAll; it cannot be
	// changed.
	//
	// +optional
	// +kubebuilder:default=PickAll
	PlacementType PlacementType `json:"placementType,omitempty"`

	// clusterNames are the members of a PickFixed placement, at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	ClusterNames []string `json:"clusterNames,omitempty"`

	// numberOfClusters is how many members a PickN placement wants.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumberOfClusters *int32 `json:"numberOfClusters,omitempty"`

	// affinity narrows down and ranks members by their labels and properties.
	//
	// +optional
	Affinity *Affinity `json:"affinity,omitempty"`

	// topologySpreadConstraints spread a PickN placement over groups of
	// members.
	//
	// +optional
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// tolerations let members with matching taints be chosen. They can be
	// added to, not changed; at most 100.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.operator != 'Exists' || !has(t.value) || size(t.value) == 0)",message="value must be empty when operator is Exists"
	// +kubebuilder:validation:XValidation:rule="self.all(t, t.operator == 'Exists' || (has(t.key) && size(t.key) > 0))",message="operator must be Exists when key is empty"
	Tolerations []Toleration `json:"tolerations,omitempty"`
}

// PlacementType is a way of choosing members.
//
// +kubebuilder:validation:Enum=PickAll;PickN;PickFixed
type PlacementType string

const (
	// PickAll chooses every member that fits.
	PickAll PlacementType = "PickAll"
	// PickN chooses a number of members, the best first.
	PickN PlacementType = "PickN"
	// PickFixed chooses members by name.
	PickFixed PlacementType = "PickFixed"
)

// Affinity holds the rules by which members are narrowed down and ranked.
type Affinity struct {
	// clusterAffinity has the rules about a member's labels and properties.
	//
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
}

// ClusterAffinity has rules about a member's labels and properties.
type ClusterAffinity struct {
	// requiredDuringSchedulingIgnoredDuringExecution must be met by a member
	// to be chosen; it is not looked at again afterwards. Empty means that
	// every member meets it.
	//
	// +optional
	RequiredDuringSchedulingIgnoredDuringExecution *ClusterSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty"`

	// preferredDuringSchedulingIgnoredDuringExecution ranks the members: the
	// weights of the terms that a member meets are added up.
	//
	// +optional
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredClusterSelector `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty"`
}

// ClusterSelector chooses members that meet at least one of its terms.
type ClusterSelector struct {
	// clusterSelectorTerms are alternatives, at most 10. None means that every
	// member is chosen.
	//
	// +required
	// +kubebuilder:validation:MaxItems=10
	ClusterSelectorTerms []ClusterSelectorTerm `json:"clusterSelectorTerms"`
}

// PreferredClusterSelector adds a weight to members that meet a term.
type PreferredClusterSelector struct {
	// weight to add, -100 to 100. With a property sorter in the preference it
	// is what the best member gets, the others a share of it.
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

// ClusterSelectorTerm is met by a member that meets all that is set in it.
type ClusterSelectorTerm struct {
	// labelSelector is about the labels of the MemberCluster.
	//
	// +optional
	LabelSelector *metav1.LabelSelector `json:"labelSelector,omitempty"`

	// propertySelector is about its properties; only in required terms.
	//
	// +optional
	PropertySelector *PropertySelector `json:"propertySelector,omitempty"`

	// propertySorter ranks by one property; only in preferred terms.
	//
	// +optional
	PropertySorter *PropertySorter `json:"propertySorter,omitempty"`
}

// PropertySelector chooses members by their properties.
type PropertySelector struct {
	// matchExpressions must all be met.
	//
	// +required
	MatchExpressions []PropertySelectorRequirement `json:"matchExpressions"`
}

// PropertySelectorRequirement compares one property of a member with a value.
// A member that does not have the property does not meet it.
type PropertySelectorRequirement struct {
	// name of the property, as in status.properties of the MemberCluster, or
	// ResourcePropertyPrefix followed by total-, allocatable- or available-
	// and a resource's name.
	//
	// +required
	Name string `json:"name"`

	// operator is one of Gt, Ge, Eq, Ne, Lt and Le.
	//
	// +required
	Operator PropertySelectorOperator `json:"operator"`

	// values has exactly one value to compare with, a quantity.
	//
	// +required
	// +kubebuilder:validation:MaxItems=1
	Values []string `json:"values"`
}

// ResourcePropertyPrefix begins the name of a property that stands for a
// resource in a member's status.resourceUsage.
const ResourcePropertyPrefix = "resources.kubernetes-fleet.io/"

// PropertySelectorOperator compares a property with a value.
type PropertySelectorOperator string

// The operators of a property selector: greater than, greater or equal, equal,
// not equal, less than, less or equal.
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

	// sortOrder says whether the largest value is the best (Descending) or the
	// smallest (Ascending).
	//
	// +required
	SortOrder PropertySortOrder `json:"sortOrder"`
}

// PropertySortOrder says which end of a ranking is the best.
//
// +kubebuilder:validation:Enum=Ascending;Descending
type PropertySortOrder string

const (
	// Ascending ranks the smallest value first.
	Ascending PropertySortOrder = "Ascending"
	// Descending ranks the largest value first.
	Descending PropertySortOrder = "Descending"
)

// TopologySpreadConstraint limits how unevenly a PickN placement may be spread
// over groups of members.
type TopologySpreadConstraint struct {
	// maxSkew is by how many members the fullest group may be ahead of the
	// emptiest: at least 1, default 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxSkew *int32 `json:"maxSkew,omitempty"`

	// topologyKey is the label whose value names a member's group. Members
	// without it are in none.
	//
	// +required
	TopologyKey string `json:"topologyKey"`

	// whenUnsatisfiable says what happens when the limit cannot be kept.
	// Default DoNotSchedule.
	//
	// +optional
	// +kubebuilder:default=DoNotSchedule
	WhenUnsatisfiable UnsatisfiableConstraintAction `json:"whenUnsatisfiable,omitempty"`
}

// UnsatisfiableConstraintAction says what happens when a spread constraint
// cannot be kept.
//
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableConstraintAction string

const (
	// DoNotSchedule leaves the member out.
	DoNotSchedule UnsatisfiableConstraintAction = "DoNotSchedule"
	// ScheduleAnyway ranks it lower.
	ScheduleAnyway UnsatisfiableConstraintAction = "ScheduleAnyway"
)

// Toleration lets a member with a matching taint be chosen.
type Toleration struct {
	// key of the taint. Empty, with operator Exists, means every taint.
	//
	// +optional
	Key string `json:"key,omitempty"`

	// operator is Equal (value must be the same) or Exists (any value).
	// Default Equal.
	//
	// +optional
	// +kubebuilder:default=Equal
	// +kubebuilder:validation:Enum=Equal;Exists
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// value of the taint; must be empty with operator Exists.
	//
	// +optional
	Value string `json:"value,omitempty"`

	// effect of the taint. Empty means every effect.
	//
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule
	Effect corev1.TaintEffect `json:"effect,omitempty"`
}
