// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ocmtaints

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func taint(effect string) framework.Taint {
	return framework.Taint{Key: "gpu", Value: "yes", Effect: effect, Added: noon}
}

func seconds(n int) *time.Duration {
	d := time.Duration(n) * time.Second
	return &d
}

func TestFilter_EffectsAndTolerations(t *testing.T) {
	exists := framework.Toleration{Key: "gpu", Exists: true}
	for name, tc := range map[string]struct {
		taints      []framework.Taint
		tolerations []framework.Toleration
		current     bool
		want        string
	}{
		"no taint":                                {},
		"NoSelect":                                {taints: []framework.Taint{taint(NoSelect)}, want: "taint gpu=yes:NoSelect is not tolerated"},
		"NoSelect drives away who has it":         {taints: []framework.Taint{taint(NoSelect)}, current: true, want: "taint gpu=yes:NoSelect is not tolerated"},
		"PreferNoSelect does nothing":             {taints: []framework.Taint{taint(PreferNoSelect)}},
		"NoSelectIfNew keeps new ones away":       {taints: []framework.Taint{taint(NoSelectIfNew)}, want: "taint gpu=yes:NoSelectIfNew is not tolerated"},
		"NoSelectIfNew leaves who has it":         {taints: []framework.Taint{taint(NoSelectIfNew)}, current: true},
		"tolerated by key":                        {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{exists}},
		"tolerated by key and value":              {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{{Key: "gpu", Value: "yes"}}},
		"another value":                           {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{{Key: "gpu", Value: "no"}}, want: "taint gpu=yes:NoSelect is not tolerated"},
		"another key":                             {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{{Key: "cpu", Exists: true}}, want: "taint gpu=yes:NoSelect is not tolerated"},
		"another effect":                          {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{{Key: "gpu", Exists: true, Effect: NoSelectIfNew}}, want: "taint gpu=yes:NoSelect is not tolerated"},
		"its effect":                              {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{{Key: "gpu", Exists: true, Effect: NoSelect}}},
		"everything is tolerated":                 {taints: []framework.Taint{taint(NoSelect), {Key: "x", Effect: NoSelect}}, tolerations: []framework.Toleration{{Exists: true}}},
		"one of two is not":                       {taints: []framework.Taint{taint(NoSelect), {Key: "x", Effect: NoSelect}}, tolerations: []framework.Toleration{exists}, want: "taint x:NoSelect is not tolerated"},
		"tolerated by the second":                 {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{{Key: "x", Exists: true}, exists}},
		"an empty value is equal to an empty one": {taints: []framework.Taint{{Key: "x", Effect: NoSelect}}, tolerations: []framework.Toleration{{Key: "x"}}},
	} {
		policy := &framework.Policy{Tolerations: tc.tolerations}
		if tc.current {
			policy.Current = sets.New("c")
		}
		cluster := &framework.Cluster{Name: "c", Taints: tc.taints}
		if got := (Rule{}).Filter(policy, &framework.Fleet{Now: noon}, cluster); got != tc.want {
			t.Errorf("%s: Filter() = %q, want %q", name, got, tc.want)
		}
	}
}

// 299 s stays, 301 s moves.
func TestFilter_TolerationEndsAfterItsSeconds(t *testing.T) {
	policy := &framework.Policy{Tolerations: []framework.Toleration{{Key: "gpu", Exists: true, For: seconds(300)}}, Current: sets.New("c")}
	cluster := &framework.Cluster{Name: "c", Taints: []framework.Taint{taint(NoSelect)}}
	for after, stays := range map[int]bool{-1: true, 0: true, 299: true, 300: false, 301: false} {
		fleet := &framework.Fleet{Now: noon.Add(time.Duration(after) * time.Second)}
		if got := (Rule{}).Filter(policy, fleet, cluster) == ""; got != stays {
			t.Errorf("after %d s: tolerated %t, want %t", after, got, stays)
		}
		want := time.Time{}
		if stays {
			want = noon.Add(300 * time.Second)
		}
		if got := (Rule{}).Until(policy, fleet, cluster); !got.Equal(want) {
			t.Errorf("after %d s: until %v, want %v", after, got, want)
		}
	}
}

func TestUntil_EndsWithToleration(t *testing.T) {
	short, long := framework.Toleration{Key: "gpu", Exists: true, For: seconds(10)}, framework.Toleration{Exists: true, For: seconds(20)}
	for name, tc := range map[string]struct {
		taints      []framework.Taint
		tolerations []framework.Toleration
		current     bool
		want        time.Time
	}{
		"the longest of a taint's tolerations":   {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{short, long}, want: noon.Add(20 * time.Second)},
		"unlimited toleration":                   {taints: []framework.Taint{taint(NoSelect)}, tolerations: []framework.Toleration{short, {Exists: true}}},
		"the first of two taints":                {taints: []framework.Taint{taint(NoSelect), {Key: "x", Effect: NoSelect, Added: noon.Add(-5 * time.Second)}}, tolerations: []framework.Toleration{long}, want: noon.Add(15 * time.Second)},
		"what does not count has no end":         {taints: []framework.Taint{taint(PreferNoSelect)}, tolerations: []framework.Toleration{short}},
		"nor what concerns new ones, of old":     {taints: []framework.Taint{taint(NoSelectIfNew)}, tolerations: []framework.Toleration{short}, current: true},
		"what concerns new ones ends, of new":    {taints: []framework.Taint{taint(NoSelectIfNew)}, tolerations: []framework.Toleration{short}, want: noon.Add(10 * time.Second)},
		"a rejection has no end":                 {taints: []framework.Taint{taint(NoSelect), {Key: "x", Effect: NoSelect}}, tolerations: []framework.Toleration{short}},
		"a taint that nobody knows the begin of": {taints: []framework.Taint{{Key: "gpu", Effect: NoSelect}}, tolerations: []framework.Toleration{short}},
	} {
		policy := &framework.Policy{Tolerations: tc.tolerations}
		if tc.current {
			policy.Current = sets.New("c")
		}
		cluster := &framework.Cluster{Name: "c", Taints: tc.taints}
		if got := (Rule{}).Until(policy, &framework.Fleet{Now: noon}, cluster); !got.Equal(tc.want) {
			t.Errorf("%s: Until() = %v, want %v", name, got, tc.want)
		}
	}
}
