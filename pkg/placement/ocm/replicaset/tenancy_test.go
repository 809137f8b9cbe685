// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// bindings are the clusters that a namespace may use; nil means that they could not be read.
type bindings []string

func (b bindings) Within(context.Context, string) (sets.Set[string], error) {
	if b == nil {
		return nil, errors.New("no cache")
	}
	return sets.New(b...), nil
}

func TestConfine_RemovesUnboundClustersFromGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		limited bool
		bound   bindings
		groups  [][]string
		outside []string
		fails   bool
	}{
		"a hub without sets":               {groups: [][]string{{"a", "b"}, {"c"}}},
		"all are bound":                    {limited: true, bound: bindings{"a", "b", "c", "d"}, groups: [][]string{{"a", "b"}, {"c"}}},
		"some are bound":                   {limited: true, bound: bindings{"a"}, groups: [][]string{{"a"}, {}}, outside: []string{"b", "c"}},
		"nothing is bound":                 {limited: true, bound: bindings{}, groups: [][]string{{}, {}}, outside: []string{"a", "b", "c"}},
		"the bindings could not be listed": {limited: true, fails: true},
	} {
		r := &Reconciler{Tenancy: tc.bound}
		r.limited.Store(tc.limited)
		d := &decided{groups: []rolloutstrategy.Group{{Clusters: []string{"a", "b"}}, {Index: 1, Clusters: []string{"c"}}}, clusters: sets.New("a", "b", "c")}
		err := r.confine(context.Background(), "team", d)
		if tc.fails {
			if err == nil {
				t.Errorf("%s: no error", name)
			}
			continue
		}
		var groups [][]string
		for _, group := range d.groups {
			groups = append(groups, group.Clusters)
		}
		if diff := cmp.Diff(tc.groups, groups); err != nil || diff != "" {
			t.Errorf("%s: groups (-want +got), %v:\n%s", name, err, diff)
		}
		if diff := cmp.Diff(tc.outside, d.outside); diff != "" {
			t.Errorf("%s: outside (-want +got):\n%s", name, diff)
		}
		if !d.clusters.HasAll("a", "b", "c") {
			t.Errorf("%s: what %v have already would be deleted", name, d.clusters)
		}
	}
}

func TestVerdict_NamesUnboundClusters(t *testing.T) {
	outside := []string{"c1", "c2", "c3", "c4", "c5", "c6", "c7"}
	var v verdict
	v.add(&placed{name: "p", decided: &decided{clusters: sets.New(outside...), outside: outside}})
	condition := v.verified(0)
	if condition.Reason != workv1alpha1.ReasonNotAsExpected || !strings.Contains(condition.Message, "c1, c2, c3, c4, c5 and 2 more") {
		t.Errorf("condition %+v", condition)
	}
	if v.rolledOut().Status != "False" {
		t.Error("it says that it is rolled out")
	}
}
