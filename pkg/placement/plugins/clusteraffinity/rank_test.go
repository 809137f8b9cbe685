// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteraffinity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestRank(t *testing.T) {
	prod := labels.SelectorFromSet(labels.Set{"env": "prod"})
	fleet := &framework.Fleet{Clusters: []framework.Cluster{
		{Name: "small", Properties: map[string]string{"nodes": "2", "same": "7"}, Labels: map[string]string{"env": "prod"}},
		{Name: "middle", Properties: map[string]string{"nodes": "5", "same": "7"}},
		{Name: "large", Properties: map[string]string{"nodes": "10", "same": "7", "cpu": "1500m"}, Labels: map[string]string{"env": "prod"}},
		{Name: "silent", Labels: map[string]string{"env": "prod"}},
		{Name: "strange", Properties: map[string]string{"nodes": "v1.36"}},
		{Name: "hostile", Properties: map[string]string{"nodes": "1e-99999999"}},
	}}
	type scores map[string]int32
	cases := map[string]struct {
		preferred []framework.Preference
		want      scores // those that are not 0
	}{
		"no preference":                                    {},
		"a label gives its weight":                         {[]framework.Preference{{Weight: 20, Labels: prod}}, scores{"small": 20, "large": 20, "silent": 20}},
		"a negative weight repels":                         {[]framework.Preference{{Weight: -20, Labels: prod}}, scores{"small": -20, "large": -20, "silent": -20}},
		"weights add up":                                   {[]framework.Preference{{Weight: 20, Labels: prod}, {Weight: 5}}, scores{"small": 25, "middle": 5, "large": 25, "silent": 25, "strange": 5, "hostile": 5}},
		"descending prefers the largest":                   {[]framework.Preference{{Weight: 100, SortBy: "nodes"}}, scores{"middle": 38, "large": 100}},
		"ascending prefers the smallest":                   {[]framework.Preference{{Weight: 100, SortBy: "nodes", Ascending: true}}, scores{"small": 100, "middle": 63}},
		"shares of a negative weight":                      {[]framework.Preference{{Weight: -100, SortBy: "nodes"}}, scores{"middle": -38, "large": -100}},
		"only clusters with the label are sorted":          {[]framework.Preference{{Weight: 100, Labels: prod, SortBy: "nodes"}}, scores{"large": 100}},
		"one value everywhere ranks nobody":                {[]framework.Preference{{Weight: 100, SortBy: "same"}}, nil},
		"one cluster with the property alone gets nothing": {[]framework.Preference{{Weight: 100, SortBy: "cpu"}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rank := Ranker{}.Rank(&framework.Policy{Preferred: tc.preferred}, fleet)
			got := scores{}
			for i := range fleet.Clusters {
				if score := rank(&fleet.Clusters[i]); score != 0 {
					got[fleet.Clusters[i].Name] = score
				}
			}
			want := tc.want
			if want == nil {
				want = scores{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Rank() (-want +got):\n%s", diff)
			}
		})
	}
}
