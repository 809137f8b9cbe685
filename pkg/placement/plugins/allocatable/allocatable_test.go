// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package allocatable

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func cluster(name, allocatable string) *framework.Cluster {
	c := &framework.Cluster{Name: name, Capacity: map[string]resource.Quantity{"cpu": resource.MustParse("100")}}
	if allocatable != "" {
		c.Allocatable = map[string]resource.Quantity{"cpu": resource.MustParse(allocatable)}
	}
	return c
}

func TestTheFormula(t *testing.T) {
	untold := cluster("untold", "9")
	untold.Capacity = nil
	for name, tc := range map[string]struct {
		candidates []*framework.Cluster
		want       map[string]int64
	}{
		"from least to most":            {[]*framework.Cluster{cluster("a", "1"), cluster("b", "2"), cluster("c", "5")}, map[string]int64{"a": -100, "b": -50, "c": 100}},
		"cut to whole numbers":          {[]*framework.Cluster{cluster("a", "0"), cluster("b", "2"), cluster("c", "3")}, map[string]int64{"a": -100, "b": 33, "c": 100}},
		"all are equal":                 {[]*framework.Cluster{cluster("a", "4"), cluster("b", "4000m")}, map[string]int64{"a": 100, "b": 100}},
		"alone":                         {[]*framework.Cluster{cluster("a", "4")}, map[string]int64{"a": 100}},
		"who does not tell it":          {[]*framework.Cluster{cluster("a", "4"), cluster("b", ""), cluster("c", "5")}, map[string]int64{"a": -100, "b": 0, "c": 100}},
		"nobody tells it":               {[]*framework.Cluster{cluster("a", "")}, map[string]int64{"a": 0}},
		"who does not tell what it has": {[]*framework.Cluster{cluster("a", "4"), cluster("b", "5"), untold}, map[string]int64{"a": -100, "b": 100, "untold": 0}},
	} {
		score, got := CPU().Score(nil, nil, tc.candidates), map[string]int64{}
		for _, c := range tc.candidates {
			got[c.Name] = score(c)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := Memory().Score(nil, nil, []*framework.Cluster{cluster("a", "4")})(cluster("a", "4")); got != 0 {
		t.Errorf("memory that nobody tells is given %d", got)
	}
}
