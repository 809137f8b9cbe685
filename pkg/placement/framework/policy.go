// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
)

// Kind is the way in which a policy picks.
type Kind string

const (
	// PickAll takes every cluster that the rules let pass.
	PickAll Kind = "PickAll"
	// PickFixed takes the clusters that are named.
	PickFixed Kind = "PickFixed"
)

// Policy is what a placement asks for.
type Policy struct {
	Kind Kind
	// Names are the clusters of a PickFixed policy.
	Names []string
	// Required are alternatives, one of which a cluster must fulfil. Empty means
	// that every cluster does.
	Required    []Term
	Tolerations []Toleration
}

// Term asks for labels and properties, all of them at once.
type Term struct {
	Labels     labels.Selector
	Properties []PropertyRequirement
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

// Toleration makes a placement accept a taint.
type Toleration struct {
	Key string
	// Exists tolerates every value of the key; otherwise the values must be
	// equal. An empty key with Exists tolerates every taint.
	Exists bool
	Value  string
	// Effect is the taint's effect; empty means any.
	Effect string
}

// State is how far a holding has come.
type State string

const (
	// Scheduled is picked, but nothing has been sent yet.
	Scheduled State = "Scheduled"
	// Bound is picked and sent.
	Bound State = "Bound"
	// Unscheduled is to be withdrawn.
	Unscheduled State = "Unscheduled"
	// Terminating is being withdrawn. Until it is gone its cluster cannot be
	// given a new holding.
	Terminating State = "Terminating"
)

// Holding says that a cluster has, or had, the placement.
type Holding struct {
	Cluster string
	State   State
	// Current is false when the holding was made for an earlier policy.
	Current bool
}

func (h Holding) selected() bool { return h.State == Scheduled || h.State == Bound }
