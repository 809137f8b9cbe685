// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Kind is how a policy picks.
type Kind string

const (
	// PickAll takes every cluster that passes the rules.
	PickAll Kind = "PickAll"
	// PickFixed takes the named clusters.
	PickFixed Kind = "PickFixed"
	// PickN takes a number of clusters, the best of those that pass the rules.
	PickN Kind = "PickN"
)

// Policy is the request of a placement.
type Policy struct {
	Kind Kind
	// Within limits the policy to some clusters. Holdings elsewhere are dropped. Nil is no limit.
	Within sets.Set[string]
	// Names are the clusters of a PickFixed policy.
	Names []string
	// Count is how many clusters a PickN policy wants.
	Count int
	// Required are alternatives, one of which a cluster must fulfil. Empty means that every cluster
	// does.
	Required []Term
	// Preferred ranks the clusters of a PickN policy.
	Preferred []Preference
	// Spread limits how unevenly the clusters of a PickN policy may be spread.
	Spread      []SpreadConstraint
	Tolerations []Toleration
	// Namespace is the placement's target namespace; empty if it has none.
	Namespace string
	// Silence is the maximum age of a cluster's last heartbeat, if that is stricter than the rules;
	// 0 leaves it to them.
	Silence time.Duration
	// Avoid are keys of taints that are never tolerated, whatever Tolerations say.
	Avoid []string
	// Current are the clusters that a Ranking picked the last time. Decide uses holdings instead.
	Current sets.Set[string]
}

// Term requires labels and properties, all of them at once.
type Term struct {
	Labels     labels.Selector
	Properties []PropertyRequirement
	// Claims is a selector over properties; nil requires nothing.
	Claims labels.Selector
	// Matches is an additional condition of the caller; nil is none. It must be a pure function of
	// the cluster. A cluster for which it fails does not match.
	Matches func(cluster *Cluster) (bool, error)
}

// PropertyRequirement compares a property, which must be a quantity, with a value.
type PropertyRequirement struct {
	Name     string
	Operator Operator
	Value    resource.Quantity
}

// Operator compares a property with a value.
type Operator string

// The supported operators.
const (
	GreaterThan    Operator = "Gt"
	GreaterOrEqual Operator = "Ge"
	EqualTo        Operator = "Eq"
	NotEqualTo     Operator = "Ne"
	LessThan       Operator = "Lt"
	LessOrEqual    Operator = "Le"
)

// Known is true if the operator is one of those above.
func (o Operator) Known() bool {
	switch o {
	case GreaterThan, GreaterOrEqual, EqualTo, NotEqualTo, LessThan, LessOrEqual:
		return true
	}
	return false
}

// Preference gives a weight to clusters whose labels match: the whole weight or, if it sorts by a
// property, a share.
type Preference struct {
	Weight int32
	// Labels is nil if every cluster matches.
	Labels labels.Selector
	// SortBy is the property that decides the share; empty means the whole weight.
	SortBy string
	// Ascending gives the whole weight to the smallest value, otherwise to the largest.
	Ascending bool
}

// SpreadConstraint limits how unevenly a placement may be spread over groups of clusters with the
// same value of a label.
type SpreadConstraint struct {
	// Label is the name of the label. The constraint ignores clusters without it.
	Label string
	// Claim says that Label is the name of a property instead.
	Claim bool
	// MaxSkew is by how many clusters the fullest group may be ahead of the emptiest.
	MaxSkew int
	// Soft ranks a cluster that would break the limit last instead of refusing it.
	Soft bool
}

// Toleration makes a placement accept a taint.
type Toleration struct {
	Key string
	// Exists tolerates every value of the key; otherwise the values must be equal. An empty key
	// with Exists tolerates every taint.
	Exists bool
	Value  string
	// Effect is the taint's effect; empty means any.
	Effect string
	// For is how long the taint is tolerated since it was added; nil is without limit.
	For *time.Duration
}
