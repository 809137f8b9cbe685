// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler"
)

// typePlacement is the type of a result for a Placement of Open Cluster Management.
const typePlacement = "Placement"

// addOCM adds an object of Open Cluster Management's kinds, and reports whether it is one.
func (in *Input) addOCM(groupKind string, text []byte) (bool, error) {
	const group = "." + ocmclusterv1beta1.GroupName
	switch groupKind {
	case "Placement" + group:
		return true, addItem(&in.Chosen, text)
	case "ManagedCluster" + group:
		return true, addItem(&in.World.Clusters, text)
	case "ManagedClusterSet" + group:
		return true, addItem(&in.World.Sets, text)
	case "ManagedClusterSetBinding" + group:
		return true, addItem(&in.World.Bindings, text)
	case "AddOnPlacementScore" + group:
		return true, addItem(&in.World.Scores, text)
	case "PlacementDecision" + group:
		return true, addItem(&in.World.Decisions, text)
	}
	return false, nil
}

func addItem[T clusterv1.ManagedCluster | clusterv1beta2.ManagedClusterSet | clusterv1beta2.ManagedClusterSetBinding |
	clusterv1alpha1.AddOnPlacementScore | ocmclusterv1beta1.Placement | ocmclusterv1beta1.PlacementDecision](list *[]T, text []byte) error {
	var object T
	if err := untrusted.UnmarshalStrict(text, untrusted.File, &object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

// lastChange is the latest time in clusters: of a taint, or of a condition's change.
func (in *Input) lastChange() time.Time {
	var latest time.Time
	note := func(at metav1.Time) {
		if at.After(latest) {
			latest = at.Time
		}
	}
	for i := range in.World.Clusters {
		for _, taint := range in.World.Clusters[i].Spec.Taints {
			note(taint.TimeAdded)
		}
		for _, condition := range in.World.Clusters[i].Status.Conditions {
			note(condition.LastTransitionTime)
		}
	}
	return latest
}

func runOCM(in *Input, now time.Time) ([]Result, error) {
	results := make([]Result, 0, len(in.Chosen))
	for i := range in.Chosen {
		placement := &in.Chosen[i]
		name := placement.Namespace + "/" + placement.Name
		why, err := in.World.Explain(placement, now)
		if err != nil {
			return nil, fmt.Errorf("placement %q: %w", name, err)
		}
		results = append(results, resultOf(name, why))
	}
	return results, nil
}

func resultOf(name string, why *scheduler.Explanation) Result {
	r := Result{Placement: name, Type: typePlacement, Fulfilled: why.Satisfied.Status == metav1.ConditionTrue, Summary: why.Summary}
	switch {
	case why.Misconfigured.Status == metav1.ConditionTrue:
		r.Summary = why.Misconfigured.Message
	case why.Total == 0:
		r.Summary = why.Satisfied.Message
	}
	left := why.Current.Clone()
	for _, place := range why.Picked {
		change := Add
		if left.Has(place.Cluster.Name) {
			change = Keep
		}
		left.Delete(place.Cluster.Name)
		r.Clusters = append(r.Clusters, Cluster{Name: place.Cluster.Name, Selected: true, Change: change, Score: &place.Score})
	}
	drop := func(c Cluster) Cluster {
		if left.Has(c.Name) {
			c.Change = Drop
			left.Delete(c.Name)
		}
		return c
	}
	var others []Cluster
	for _, place := range why.Outscored {
		others = append(others, drop(Cluster{Name: place.Cluster.Name, Score: &place.Score, Reason: "scored lower"}))
	}
	for _, refusal := range why.Refusals {
		others = append(others, drop(Cluster{Name: refusal.Cluster, Rule: refusal.Rule, Reason: refusal.Reason}))
	}
	for _, name := range left.UnsortedList() {
		others = append(others, Cluster{Name: name, Change: Drop, Reason: "the cluster is in no set of the Placement"})
	}
	slices.SortStableFunc(others, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(dropFirst(a), dropFirst(b)), cmp.Compare(ruleLast(a), ruleLast(b)))
	})
	r.Clusters = append(r.Clusters, others...)
	return r
}

func dropFirst(c Cluster) int {
	if c.Change == Drop {
		return 0
	}
	return 1
}

func ruleLast(c Cluster) int {
	if c.Rule == "" {
		return 0
	}
	return 1
}
