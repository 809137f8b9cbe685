// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusteraffinity

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func TestFilter(t *testing.T) {
	prod := framework.Term{Labels: labels.SelectorFromSet(labels.Set{"env": "prod"})}
	nodes := func(op framework.Operator, value string) framework.Term {
		return framework.Term{Properties: []framework.PropertyRequirement{{Name: "nodes", Operator: op, Value: resource.MustParse(value)}}}
	}
	both := nodes(framework.GreaterThan, "2")
	both.Labels = prod.Labels
	cluster := &framework.Cluster{
		Labels:     map[string]string{"env": "prod"},
		Properties: map[string]string{"nodes": "3", "version": "v1.36", "hostile": "1e-99999999"},
		Agent:      framework.Agent{Reported: true},
	}
	cases := map[string]struct {
		terms []framework.Term
		want  bool
	}{
		"nothing required":                {want: true},
		"label matches":                   {terms: []framework.Term{prod}, want: true},
		"label differs":                   {terms: []framework.Term{{Labels: labels.SelectorFromSet(labels.Set{"env": "dev"})}}},
		"one of two terms is enough":      {terms: []framework.Term{nodes(framework.LessThan, "1"), prod}, want: true},
		"label and property":              {terms: []framework.Term{both}, want: true},
		"greater":                         {terms: []framework.Term{nodes(framework.GreaterThan, "3")}},
		"greater or equal":                {terms: []framework.Term{nodes(framework.GreaterOrEqual, "3")}, want: true},
		"equal by value, not by text":     {terms: []framework.Term{nodes(framework.EqualTo, "3000m")}, want: true},
		"not equal":                       {terms: []framework.Term{nodes(framework.NotEqualTo, "3")}},
		"less":                            {terms: []framework.Term{nodes(framework.LessThan, "4")}, want: true},
		"less or equal":                   {terms: []framework.Term{nodes(framework.LessOrEqual, "2")}},
		"an unknown operator is no match": {terms: []framework.Term{nodes("About", "3")}},
		"a missing property is no match": {terms: []framework.Term{{Properties: []framework.PropertyRequirement{
			{Name: "gpus", Operator: framework.NotEqualTo, Value: resource.MustParse("1")}}}}},
		"a property that is no quantity is no match": {terms: []framework.Term{{Properties: []framework.PropertyRequirement{
			{Name: "version", Operator: framework.NotEqualTo, Value: resource.MustParse("1")}}}}},
		"a property of a billion digits is no match": {terms: []framework.Term{{Properties: []framework.PropertyRequirement{
			{Name: "hostile", Operator: framework.NotEqualTo, Value: resource.MustParse("1")}}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			reason := Rule{}.Filter(&framework.Policy{Required: tc.terms}, &framework.Fleet{}, cluster)
			if got := reason == ""; got != tc.want {
				t.Errorf("Filter() = %q, want a match: %t", reason, tc.want)
			}
		})
	}
}

// A restored hub does not have the reports of members yet.
func TestFilter_IgnoresPropertiesOfClusterThatHasNotReported(t *testing.T) {
	term := framework.Term{Labels: labels.SelectorFromSet(labels.Set{"env": "prod"}),
		Properties: []framework.PropertyRequirement{{Name: "nodes", Operator: framework.GreaterThan, Value: resource.MustParse("2")}}}
	policy := &framework.Policy{Required: []framework.Term{term}}
	for env, want := range map[string]bool{"prod": true, "dev": false} {
		if reason := (Rule{}).Filter(policy, &framework.Fleet{}, &framework.Cluster{Labels: map[string]string{"env": env}}); (reason == "") != want {
			t.Errorf("label %s: %q, want a match: %t", env, reason, want)
		}
	}
}
