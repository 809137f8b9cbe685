// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"fleetgate.io/fleetgate/pkg/placement/framework"
)

func selector(t *testing.T, text string) labels.Selector {
	t.Helper()
	parsed, err := labels.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestOneAlternativeHasToFitWithAllItsParts(t *testing.T) {
	cluster := &framework.Cluster{Name: "c", Labels: map[string]string{"env": "prod"}, Properties: map[string]string{"region": "eu"}}
	says := func(answer bool, err error) func(*framework.Cluster) (bool, error) {
		return func(*framework.Cluster) (bool, error) { return answer, err }
	}
	prod, test := selector(t, "env=prod"), selector(t, "env=test")
	eu, us := selector(t, "region in (eu)"), selector(t, "region in (us)")
	for name, tc := range map[string]struct {
		terms []framework.Term
		want  string
	}{
		"nothing is asked":                      {},
		"an empty alternative fits":             {terms: []framework.Term{{}}},
		"label and claim fit":                   {terms: []framework.Term{{Labels: prod, Claims: eu}}},
		"the label does not":                    {terms: []framework.Term{{Labels: test, Claims: eu}}, want: "lacked label env=test"},
		"the claim does not":                    {terms: []framework.Term{{Labels: prod, Claims: us}}, want: "lacked claim region in (us)"},
		"an expression is true":                 {terms: []framework.Term{{Matches: says(true, nil)}}},
		"an expression is false":                {terms: []framework.Term{{Labels: prod, Matches: says(false, nil)}}, want: "for which an expression is false"},
		"an expression fails":                   {terms: []framework.Term{{Matches: says(true, errors.New("no such key"))}}, want: "for which an expression fails"},
		"the second of two fits":                {terms: []framework.Term{{Labels: test}, {Claims: eu}}},
		"none of two fits":                      {terms: []framework.Term{{Labels: test}, {Claims: us}}, want: "fits none of 2 alternatives"},
		"an expression is not asked in vain":    {terms: []framework.Term{{Labels: prod}, {Matches: func(*framework.Cluster) (bool, error) { panic("asked") }}}},
		"parts of two alternatives do not help": {terms: []framework.Term{{Labels: prod, Claims: us}, {Labels: test, Claims: eu}}, want: "fits none of 2 alternatives"},
	} {
		policy := &framework.Policy{Required: tc.terms}
		if got := (Rule{}).Filter(policy, nil, cluster); got != tc.want {
			t.Errorf("%s: Filter() = %q, want %q", name, got, tc.want)
		}
	}
}
