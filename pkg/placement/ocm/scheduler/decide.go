// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/framework"
	"fleetgate.io/fleetgate/pkg/placement/plugins"
	"fleetgate.io/fleetgate/pkg/placement/plugins/ocmtaints"
)

// result is the result of one decision.
type result struct {
	parsed *parsedPlacement
	policy framework.Policy
	fleet  framework.Fleet
	ranked framework.Ranked
	available
	// slices are the desired PlacementDecisions, groups describes them in the Placement's status.
	slices []slice
	groups []ocmclusterv1beta1.DecisionGroupStatus
	// again is when to decide again even if nothing changes; zero is never.
	again time.Time
	// scored is true if the decisions use current scores.
	scored bool
}

// slice is one PlacementDecision.
type slice struct {
	name, group string
	index       int
	decisions   []ocmclusterv1beta1.ClusterDecision
}

func sliceName(placement string, number int) string {
	return fmt.Sprintf("%s-decision-%d", naming.Within(placement, 230), number)
}

func (s *slice) labels(placement string) map[string]string {
	return map[string]string{
		ocmclusterv1beta1.PlacementLabel:          naming.LabelValue(placement),
		ocmclusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(s.index),
		ocmclusterv1beta1.DecisionGroupNameLabel:  s.group,
	}
}

func (s *slice) clusters() []string {
	return clustersOf(&ocmclusterv1beta1.PlacementDecision{Status: ocmclusterv1beta1.PlacementDecisionStatus{Decisions: s.decisions}})
}

// decide decides for a Placement with these existing decisions, from the available clusters.
func decide(placement *ocmclusterv1beta1.Placement, p *parsedPlacement, from available, mostDecided int, now time.Time, existing []*ocmclusterv1beta1.PlacementDecision) *result {
	r := &result{parsed: p, policy: p.policy, fleet: framework.Fleet{Now: now, Clusters: from.clusters, MostDecided: mostDecided}, available: from}
	r.policy.Current = sets.New[string]()
	for _, decision := range existing {
		r.policy.Current.Insert(clustersOf(decision)...)
	}
	groups := []group{{}}
	if p.wrong == "" {
		r.rank()
		r.again = r.ranked.Until
		groups = p.grouping.cut(r.ranked.Picked)
	}
	r.cut(placement, groups, existing)
	r.limitRate(placement, existing)
	return r
}

// rank ranks until the result is stable. A cluster that only its holders may keep no longer counts
// once it is lost, and the next decision would find that.
func (r *result) rank() {
	ranking := plugins.Ranking()
	ranking.Finished = r.parsed.watch.begin()
	defer r.parsed.watch.end()
	for {
		// It fails only for kinds of policy that parsePlacement never sets.
		r.ranked, _ = ranking.Rank(&r.policy, &r.fleet, r.parsed.scorers)
		if !r.loses() {
			return
		}
	}
}

// loses removes the clusters that were not picked from those that the Placement has, if a rule
// depends on that, and reports whether it did. The number only falls.
func (r *result) loses() bool {
	lost := r.policy.Current.Clone()
	for i := range r.ranked.Picked {
		lost.Delete(r.ranked.Picked[i].Cluster.Name)
	}
	differs := false
	for i := range r.fleet.Clusters {
		cluster := &r.fleet.Clusters[i]
		differs = differs || lost.Has(cluster.Name) && ocmtaints.HasNoSelectIfNew(cluster)
	}
	if differs {
		r.policy.Current = r.policy.Current.Difference(lost)
	}
	return differs
}

// cut divides groups into slices.
func (r *result) cut(placement *ocmclusterv1beta1.Placement, groups []group, existing []*ocmclusterv1beta1.PlacementDecision) {
	before := map[string][][]string{}
	for _, decision := range existing {
		index := decision.Labels[ocmclusterv1beta1.DecisionGroupIndexLabel]
		before[index] = append(before[index], clustersOf(decision))
	}
	for index, g := range groups {
		status := ocmclusterv1beta1.DecisionGroupStatus{DecisionGroupIndex: int32(index), DecisionGroupName: g.name, ClustersCount: int32(len(g.places))}
		for _, places := range slicesOf(g.places, before[strconv.Itoa(index)], r.parsed.byScore) {
			s := slice{name: sliceName(placement.Name, len(r.slices)+1), group: g.name, index: index, decisions: []ocmclusterv1beta1.ClusterDecision{}}
			for _, place := range places {
				decision := ocmclusterv1beta1.ClusterDecision{ClusterName: place.Cluster.Name}
				if r.parsed.byScore {
					decision.Score = &place.Score
				}
				s.decisions = append(s.decisions, decision)
			}
			r.slices, status.Decisions = append(r.slices, s), append(status.Decisions, s.name)
		}
		r.groups = append(r.groups, status)
	}
}

// limitRate keeps decisions where only scores have changed, until the rate limit allows an update.
func (r *result) limitRate(placement *ocmclusterv1beta1.Placement, existing []*ocmclusterv1beta1.PlacementDecision) {
	if !r.parsed.byScore {
		return
	}
	r.scored = true
	last := placement.Status.LastScoreUpdateTime
	if last == nil || len(existing) != len(r.slices) || !decidedFor(placement) {
		return
	}
	same, scores := true, true
	kept := make([][]ocmclusterv1beta1.ClusterDecision, len(r.slices))
	for i := range r.slices {
		is, was := &r.slices[i], existing[i]
		same = same && is.name == was.Name && sets.New(is.clusters()...).Equal(sets.New(clustersOf(was)...))
		scores = scores && slices.EqualFunc(is.decisions, was.Status.Decisions, sameDecision)
		kept[i] = was.Status.Decisions
	}
	next := last.Add(r.parsed.rateLimit)
	if !same || scores || !r.fleet.Now.Before(next) {
		r.scored = !scores
		return
	}
	for i := range r.slices {
		r.slices[i].decisions = kept[i]
	}
	r.scored = false
	if r.again.IsZero() || next.Before(r.again) {
		r.again = next
	}
}

// decidedFor is true if the Placement's decisions are for its current spec.
func decidedFor(placement *ocmclusterv1beta1.Placement) bool {
	return !slices.ContainsFunc(placement.Status.Conditions, func(c metav1.Condition) bool { return c.ObservedGeneration != placement.Generation })
}

func sameDecision(a, b ocmclusterv1beta1.ClusterDecision) bool {
	return a.ClusterName == b.ClusterName && a.Reason == b.Reason && (a.Score == nil) == (b.Score == nil) && (a.Score == nil || *a.Score == *b.Score)
}

// satisfied is the condition, in upstream's words, of whether there are as many clusters as wanted,
// and the reason.
func (r *result) satisfied() metav1.Condition {
	c := metav1.Condition{Type: ocmclusterv1beta1.ConditionSatisfied, Status: metav1.ConditionFalse}
	switch {
	case r.bound == 0:
		c.Reason, c.Message = ocmclusterv1beta1.ReasonNoManagedClusterSetBindings, "No valid ManagedClusterSetBindings found in placement namespace"
	case len(r.eligible) == 0:
		c.Reason = ocmclusterv1beta1.ReasonNoIntersection
		c.Message = fmt.Sprintf("None of ManagedClusterSets [%s] is bound to placement namespace", strings.Join(r.parsed.sets, ","))
	case len(r.clusters) == 0:
		c.Reason = ocmclusterv1beta1.ReasonAllManagedClusterSetsEmpty
		c.Message = fmt.Sprintf("All ManagedClusterSets [%s] have no member ManagedCluster", strings.Join(r.eligible, ","))
	case len(r.ranked.Picked) == 0:
		c.Reason, c.Message = ocmclusterv1beta1.ReasonNoManagedClusterMatched, "No ManagedCluster matches any of the cluster predicate"+r.why()
	case r.ranked.Missing == 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, ocmclusterv1beta1.ReasonAllDecisionsScheduled, "All cluster decisions scheduled"
	default:
		c.Reason, c.Message = ocmclusterv1beta1.ReasonNotAllDecisionsScheduled, fmt.Sprintf("%d cluster decisions unscheduled", r.ranked.Missing)+r.why()
	}
	return c
}

// why summarizes why the other clusters were not picked.
func (r *result) why() string {
	if r.parsed.wrong != "" {
		return ""
	}
	return ": " + plugins.Ranking().Diagnose(&r.policy, &r.fleet, &r.ranked).String()
}

func (r *result) misconfigured() metav1.Condition {
	if r.parsed.wrong != "" {
		return metav1.Condition{Type: ocmclusterv1beta1.ConditionMisconfigured, Status: metav1.ConditionTrue, Reason: ocmclusterv1beta1.ReasonMisconfigured, Message: r.parsed.wrong}
	}
	return metav1.Condition{Type: ocmclusterv1beta1.ConditionMisconfigured, Status: metav1.ConditionFalse, Reason: ocmclusterv1beta1.ReasonSucceedconfigured,
		Message: "Placement configurations check pass"}
}

// status is the Placement's status after the decision.
func (r *result) status(placement *ocmclusterv1beta1.Placement, now time.Time) ocmclusterv1beta1.PlacementStatus {
	status := *placement.Status.DeepCopy()
	status.NumberOfSelectedClusters = int32(len(r.ranked.Picked))
	status.DecisionGroups = r.groups
	if r.scored {
		status.LastScoreUpdateTime = &metav1.Time{Time: now.Truncate(time.Second)}
	}
	// In this order, because some readers read only the first.
	conditions := []metav1.Condition{r.misconfigured(), r.satisfied()}
	for i := range conditions {
		c := &conditions[i]
		c.ObservedGeneration, c.LastTransitionTime = placement.Generation, metav1.NewTime(now.Truncate(time.Second))
		c.Message = untrusted.Truncate(c.Message, maxMessage)
		for _, was := range placement.Status.Conditions {
			if was.Type == c.Type && was.Status == c.Status {
				c.LastTransitionTime = was.LastTransitionTime
			}
		}
	}
	for _, other := range placement.Status.Conditions {
		if other.Type != ocmclusterv1beta1.ConditionMisconfigured && other.Type != ocmclusterv1beta1.ConditionSatisfied {
			conditions = append(conditions, other)
		}
	}
	status.Conditions = conditions
	return status
}

// maxMessage limits the message of a condition, roughly in bytes.
const maxMessage = 32000
