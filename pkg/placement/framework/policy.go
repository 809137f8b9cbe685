// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Kind is the way in which a policy picks.
type Kind string

const (
	// PickAll takes every cluster that the rules let pass.
	PickAll Kind = "PickAll"
	// PickFixed takes the clusters that are named.
	PickFixed Kind = "PickFixed"
	// PickN takes a number of clusters, the best of those that the rules let
	// pass.
	PickN Kind = "PickN"
)

// Policy is what a placement asks for.
type Policy struct {
	Kind Kind
	// Within limits the policy to some clusters: for it there are no others, and
	// what it holds elsewhere it loses. Nil is no limit.
	Within sets.Set[string]
	// Names are the clusters of a PickFixed policy.
	Names []string
	// Count is how many clusters a PickN policy wants.
	Count int
	// Required are alternatives, one of which a cluster must fulfil. Empty means
	// that every cluster does.
	Required []Term
	// Preferred ranks the clusters of a PickN policy.
	Preferred []Preference
	// Spread limits how unevenly the clusters of a PickN policy may be spread.
	Spread      []SpreadConstraint
	Tolerations []Toleration
	// Namespace is the one into which the placement places; empty if it is not
	// bound to one.
	Namespace string
	// Silence is how long a cluster may be silent to be picked, if that is less
	// than what the rules allow; 0 leaves it to them.
	Silence time.Duration
	// Avoid are keys of taints that are not tolerated whatever Tolerations say.
	Avoid []string
	// Held are the clusters that a policy picked the last time which is decided anew
	// each time: Decide has holdings instead.
	Held sets.Set[string]
}

// Term asks for labels and properties, all of them at once.
type Term struct {
	Labels     labels.Selector
	Properties []PropertyRequirement
	// Claims is over properties as they stand; nil asks for nothing.
	Claims labels.Selector
	// Matches is what the caller has to say besides; nil is nothing. It must be a pure
	// function of the cluster. A cluster of which it fails does not match.
	Matches func(cluster *Cluster) (bool, error)
}

// PropertyRequirement compares a property, which must read as a quantity, with
// a value.
type PropertyRequirement struct {
	Name     string
	Operator Operator
	Value    resource.Quantity
}

// Operator compares a property with a value.
type Operator string

// The comparisons that there are.
const (
	GreaterThan    Operator = "Gt"
	GreaterOrEqual Operator = "Ge"
	EqualTo        Operator = "Eq"
	NotEqualTo     Operator = "Ne"
	LessThan       Operator = "Lt"
	LessOrEqual    Operator = "Le"
)

// Known reports whether the operator is one of those above.
func (o Operator) Known() bool {
	switch o {
	case GreaterThan, GreaterOrEqual, EqualTo, NotEqualTo, LessThan, LessOrEqual:
		return true
	}
	return false
}

// Preference gives clusters a weight: those whose labels match, all of it or, if
// it sorts by a property, a share.
type Preference struct {
	Weight int32
	// Labels is nil if every cluster matches.
	Labels labels.Selector
	// SortBy is the property that decides about the share; empty means that the
	// weight is not shared out.
	SortBy string
	// Ascending gives the whole weight to the smallest value, otherwise to the
	// largest.
	Ascending bool
}

// SpreadConstraint limits how unevenly a placement may be spread over groups of
// clusters, those with the same value of a label.
type SpreadConstraint struct {
	// Label is the name of the label. Clusters without it are in no group, and
	// the constraint does not concern them.
	Label string
	// Claim says that Label is the name of a property instead.
	Claim bool
	// MaxSkew is by how many clusters the fullest group may be ahead of the
	// emptiest.
	MaxSkew int
	// Soft ranks a cluster that would break the limit last instead of refusing
	// it.
	Soft bool
}

// Toleration makes a placement accept a taint.
type Toleration struct {
	Key string
	// Exists tolerates every value of the key; otherwise the values must be
	// equal. An empty key with Exists tolerates every taint.
	Exists bool
	Value  string
	// Effect is the taint's effect; empty means any.
	Effect string
	// For is for how long the taint is tolerated since it was added; nil is for ever.
	For *time.Duration
}
