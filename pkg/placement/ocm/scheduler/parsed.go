// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
	"fleetgate.io/fleetgate/pkg/placement/plugins/addonscore"
	"fleetgate.io/fleetgate/pkg/placement/plugins/allocatable"
	"fleetgate.io/fleetgate/pkg/placement/plugins/balance"
	"fleetgate.io/fleetgate/pkg/placement/plugins/ocmtaints"
	"fleetgate.io/fleetgate/pkg/placement/plugins/predicate"
	"fleetgate.io/fleetgate/pkg/placement/plugins/steady"
)

// parsedPlacement is a Placement's spec, parsed once per generation.
type parsedPlacement struct {
	uid        types.UID
	generation int64
	// wrong says what is invalid, and which component reports it; empty if all is valid. Otherwise
	// only the sets count.
	wrong string
	// sets are those that it names; empty is all.
	sets     []string
	policy   framework.Policy
	scorers  []framework.Weighted
	grouping *grouping
	byScore  bool
	// rateLimit is the interval in which scores alone change nothing.
	rateLimit time.Duration
	reads     dependencies
	// watch measures plugins and expressions; nil measures nothing.
	watch *stopwatch
}

// dependencies are what a decision depends on, besides taints.
type dependencies struct {
	labels, claims sets.Set[string]
	resources      bool
	// scores are names of AddOnPlacementScores, with the names of scores in them.
	scores map[string]sets.Set[string]
	cel    clustercel.Dependencies
}

func parsePlacement(placement *ocmclusterv1beta1.Placement, compiler *clustercel.Compiler) *parsedPlacement {
	spec := &placement.Spec
	p := &parsedPlacement{uid: placement.UID, generation: placement.Generation, sets: spec.ClusterSets, byScore: spec.SortBy == ocmclusterv1beta1.SortByScore,
		reads: dependencies{labels: sets.New[string](), claims: sets.New[string](), scores: map[string]sets.Set[string]{}}}
	p.policy.Kind = framework.PickAll
	if spec.NumberOfClusters != nil {
		p.policy.Kind, p.policy.Count = framework.PickN, int(*spec.NumberOfClusters)
	}
	for _, part := range []struct {
		name string
		read func(*ocmclusterv1beta1.PlacementSpec) error
	}{
		{predicate.Name, func(spec *ocmclusterv1beta1.PlacementSpec) error { return p.readPredicates(spec, compiler) }},
		{ocmtaints.Name, p.readTolerations},
		{"PrioritizerPolicy", p.readPrioritizers},
		{"DecisionStrategy", p.readGrouping},
		{"ScoreRateLimit", p.readRateLimit},
	} {
		if err := part.read(spec); err != nil {
			p.wrong = fmt.Sprintf("%s:%v", part.name, err)
			return p
		}
	}
	p.readSpread(spec)
	return p
}

func (p *parsedPlacement) readPredicates(spec *ocmclusterv1beta1.PlacementSpec, compiler *clustercel.Compiler) error {
	for i := range spec.Predicates {
		selector := &spec.Predicates[i].RequiredClusterSelector
		term := framework.Term{}
		var err error
		if term.Labels, term.Claims, err = selectors(&selector.LabelSelector, &selector.ClaimSelector); err != nil {
			return err
		}
		p.addSelectors(term.Labels, term.Claims)
		if expressions := selector.CELSelector.CELExpressions; len(expressions) > 0 {
			compiled, err := compiler.Compile(expressions)
			if err != nil {
				return err
			}
			term.Matches = func(cluster *framework.Cluster) (bool, error) {
				defer p.watch.expression()()
				return compiled.Matches(cluster.Source.(*source).expressed())
			}
			p.reads.cel.Merge(compiled.Dependencies())
		}
		p.policy.Required = append(p.policy.Required, term)
	}
	return nil
}

func (p *parsedPlacement) addSelectors(ofLabels, ofClaims labels.Selector) {
	insertKeys(p.reads.labels, ofLabels)
	insertKeys(p.reads.claims, ofClaims)
}

func insertKeys(keys sets.Set[string], selector labels.Selector) {
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		keys.Insert(requirement.Key())
	}
}

func (p *parsedPlacement) readTolerations(spec *ocmclusterv1beta1.PlacementSpec) error {
	for _, t := range spec.Tolerations {
		exists := t.Operator == ocmclusterv1beta1.OperatorExists
		switch {
		case t.Key == "" && !exists:
			return complaint("If the key is empty, operator must be Exists.")
		case exists && t.Value != "":
			return complaint("If the operator is Exists, the value should be empty.")
		case !exists && t.Operator != ocmclusterv1beta1.OperatorEqual && t.Operator != "":
			continue // It tolerates nothing.
		}
		toleration := framework.Toleration{Key: t.Key, Exists: exists, Value: t.Value, Effect: t.Effect}
		if t.TolerationSeconds != nil {
			limit := time.Duration(min(*t.TolerationSeconds, maxSeconds)) * time.Second
			toleration.For = &limit
		}
		p.policy.Tolerations = append(p.policy.Tolerations, toleration)
	}
	return nil
}

// complaint is an error in upstream's words, which clients compare.
type complaint string

func (c complaint) Error() string { return string(c) }

// maxSeconds is a hundred years; the maximum of a Duration is about three times as much.
const maxSeconds = 100 * 365 * 24 * 3600

func (p *parsedPlacement) readPrioritizers(spec *ocmclusterv1beta1.PlacementSpec) error {
	policy := &spec.PrioritizerPolicy
	switch policy.Mode {
	case ocmclusterv1beta1.ModeExact:
	case ocmclusterv1beta1.ModeAdditive, "":
		p.scorers = []framework.Weighted{{Scorer: balance.Scorer{}, Weight: 1}, {Scorer: steady.Scorer{}, Weight: 1}}
	default:
		return fmt.Errorf("incorrect prioritizer policy mode: %s", policy.Mode)
	}
	for _, config := range policy.Configurations {
		scorer, err := scorerOf(&config.ScoreCoordinate)
		if err != nil {
			return err
		}
		weighted := framework.Weighted{Scorer: scorer, Weight: int64(config.Weight)}
		if at := slices.IndexFunc(p.scorers, func(known framework.Weighted) bool { return known.Scorer.Name() == scorer.Name() }); at >= 0 {
			p.scorers[at] = weighted
		} else {
			p.scorers = append(p.scorers, weighted)
		}
	}
	p.scorers = slices.DeleteFunc(p.scorers, func(weighted framework.Weighted) bool { return weighted.Weight == 0 })
	for _, weighted := range p.scorers {
		switch scorer := weighted.Scorer.(type) {
		case allocatable.Scorer:
			p.reads.resources = true
		case addonscore.Scorer:
			if p.reads.scores[scorer.Sheet] == nil {
				p.reads.scores[scorer.Sheet] = sets.New[string]()
			}
			p.reads.scores[scorer.Sheet].Insert(scorer.Value)
		}
	}
	return nil
}

func scorerOf(coordinate *ocmclusterv1beta1.ScoreCoordinate) (framework.Scorer, error) {
	if coordinate.Type == ocmclusterv1beta1.CoordinateAddOn {
		if coordinate.AddOn == nil {
			return nil, complaint("addOn should not be empty")
		}
		return addonscore.Scorer{Sheet: coordinate.AddOn.ResourceName, Value: coordinate.AddOn.ScoreName}, nil
	}
	for _, scorer := range []framework.Scorer{balance.Scorer{}, steady.Scorer{}, allocatable.CPU(), allocatable.Memory()} {
		if scorer.Name() == coordinate.BuiltIn {
			return scorer, nil
		}
	}
	return nil, fmt.Errorf("incorrect builtin prioritizer: %s", coordinate.BuiltIn)
}

func (p *parsedPlacement) readGrouping(spec *ocmclusterv1beta1.PlacementSpec) (err error) {
	if p.grouping, err = newGrouping(spec); err != nil {
		return err
	}
	for _, named := range p.grouping.named {
		p.addSelectors(named.labels, named.claims)
	}
	return nil
}

func (p *parsedPlacement) readRateLimit(spec *ocmclusterv1beta1.PlacementSpec) (err error) {
	if spec.ScoreRateLimit != "" {
		p.rateLimit, err = time.ParseDuration(spec.ScoreRateLimit)
	}
	return err
}

func (p *parsedPlacement) readSpread(spec *ocmclusterv1beta1.PlacementSpec) {
	for _, c := range spec.SpreadPolicy.SpreadConstraints {
		claim := c.TopologyKeyType == ocmclusterv1beta1.TopologyClaim
		p.policy.Spread = append(p.policy.Spread, framework.SpreadConstraint{
			Label: c.TopologyKey, Claim: claim, MaxSkew: int(max(1, c.MaxSkew)), Soft: c.WhenUnsatisfiable != ocmclusterv1beta1.DoNotSchedule,
		})
		if claim {
			p.reads.claims.Insert(c.TopologyKey)
		} else {
			p.reads.labels.Insert(c.TopologyKey)
		}
	}
}

// names is true if the Placement chooses from a set, if that is bound.
func (p *parsedPlacement) names(set string) bool {
	return len(p.sets) == 0 || slices.Contains(p.sets, set)
}
