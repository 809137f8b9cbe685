// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
)

func TestMembers(t *testing.T) {
	const label = "cluster.open-cluster-management.io/clusterset"
	by := func(kind clusterv1beta2.SelectorType, selector *metav1.LabelSelector) clusterv1beta2.ManagedClusterSelector {
		return clusterv1beta2.ManagedClusterSelector{SelectorType: kind, LabelSelector: selector}
	}
	for name, tc := range map[string]struct {
		selector clusterv1beta2.ManagedClusterSelector
		cluster  labels.Set
		in, bad  bool
	}{
		"its label":                  {by("ExclusiveClusterSetLabel", nil), labels.Set{label: "set"}, true, false},
		"another set's":              {by("ExclusiveClusterSetLabel", nil), labels.Set{label: "other"}, false, false},
		"no label":                   {by("ExclusiveClusterSetLabel", nil), nil, false, false},
		"a selector beside it":       {by("ExclusiveClusterSetLabel", &metav1.LabelSelector{}), nil, false, false},
		"nobody said how":            {by("", nil), labels.Set{label: "set"}, true, false},
		"selected":                   {by("LabelSelector", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}), labels.Set{"a": "b"}, true, false},
		"not selected":               {by("LabelSelector", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}), labels.Set{label: "set"}, false, false},
		"an empty selector is all":   {by("LabelSelector", &metav1.LabelSelector{}), nil, true, false},
		"so is none":                 {by("LabelSelector", nil), nil, true, false},
		"a selector that is wrong":   {by("LabelSelector", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}}), nil, false, true},
		"a way that nobody knows of": {by("Best", nil), nil, false, true},
	} {
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}, Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: tc.selector}}
		selector, err := Members(set)
		if (err != nil) != tc.bad || err == nil && selector.Matches(tc.cluster) != tc.in {
			t.Errorf("%s: got %v, %v", name, selector, err)
		}
	}
}

func TestNamespacesOf(t *testing.T) {
	set := func(name string, selector clusterv1beta2.SelectorType, namespaces ...string) clusterv1beta2.ManagedClusterSet {
		set := clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
		set.Spec.ClusterSelector.SelectorType = selector
		for _, namespace := range namespaces {
			set.Spec.ManagedNamespaces = append(set.Spec.ManagedNamespaces, clusterv1beta2.ManagedNamespaceConfig{Name: namespace})
		}
		return set
	}
	said := []metav1.Condition{{Type: "NamespaceAvailable"}}
	cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.ClusterSetLabel: "a"}}}
	cluster.Status.ManagedNamespaces = []clusterv1.ClusterSetManagedNamespaceStatus{{ClusterSet: "a", Name: "x", Conditions: said}, {ClusterSet: "b", Name: "x", Conditions: said}}
	got := namespacesOf(cluster, []clusterv1beta2.ManagedClusterSet{
		set("global", "LabelSelector", "g"), set("b", "ExclusiveClusterSetLabel", "x"), set("a", "ExclusiveClusterSetLabel", "y", "x"), set("wrong", "?", "z"),
	})
	want := []clusterv1.ClusterSetManagedNamespaceStatus{{ClusterSet: "a", Name: "x", Conditions: said}, {ClusterSet: "a", Name: "y"}, {ClusterSet: "global", Name: "g"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Clients print these.
func TestConditions_MatchUpstream(t *testing.T) {
	for clusters, want := range map[int]string{
		0: "True NoClusterMatched No ManagedCluster selected", 1: "False ClustersSelected 1 ManagedClusters selected", 2: "False ClustersSelected 2 ManagedClusters selected",
	} {
		got := emptyCondition(clusters)
		if said := string(got.Status) + " " + got.Reason + " " + got.Message; said != want {
			t.Errorf("%d: %s, want %s", clusters, said, want)
		}
	}
}
