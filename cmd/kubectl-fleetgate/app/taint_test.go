// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"strings"
	"testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestParseTaints_SyntaxOfKubectl(t *testing.T) {
	for name, test := range map[string]struct {
		before, args, want string
	}{
		"one more":             {"a:NoSchedule", "b=1:NoSchedule", "a:NoSchedule,b=1:NoSchedule"},
		"another value":        {"a=1:NoSchedule,b:NoSchedule", "a=2:NoSchedule", "b:NoSchedule,a=2:NoSchedule"},
		"away":                 {"a=1:NoSchedule,b:NoSchedule", "a-", "b:NoSchedule"},
		"away by effect":       {"a:NoSchedule", "a:NoSchedule-", ""},
		"away, of another":     {"a:NoSchedule", "a:NoExecute-", "a:NoSchedule"},
		"several at a time":    {"a:NoSchedule", "a- example.com/b=c:NoSchedule", "example.com/b=c:NoSchedule"},
		"the same taint again": {"a:NoSchedule", "a:NoSchedule", "a:NoSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			var taints []clusterv1beta1.Taint
			given, err := parseTaints(strings.Split(test.before, ","))
			if err != nil {
				t.Fatal(err)
			}
			changes, err := parseTaints(strings.Fields(test.args))
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range append(given, changes...) {
				taints = change(taints)
			}
			if got := taintsText(taints); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for _, bad := range []string{"a", "a:NoExecute", ":NoSchedule", "a b:NoSchedule", "-"} {
		if _, err := parseTaints([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestOlderIndex_SelectsExistingSnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		kept []int
		used string
		to   int
		want int
		no   string
	}{
		"the previous snapshot": {kept: []int{2, 3, 5}, used: "5", to: -1, want: 3},
		"one that is named":     {kept: []int{2, 3, 5}, used: "5", to: 2, want: 2},
		"one that is gone":      {kept: []int{2, 3, 5}, used: "5", to: 1, no: "available are 2, 3, 5"},
		"none that is older":    {kept: []int{2, 3}, used: "2", to: -1, no: "no snapshot older than 2"},
		"one that never began":  {kept: []int{2, 3}, to: -1, no: "set --to to one of"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := olderIndex(slices.Clone(test.kept), test.used, test.to)
			if (err == nil) != (test.no == "") || err != nil && !strings.Contains(err.Error(), test.no) || err == nil && got != test.want {
				t.Errorf("got %d, %v, want %d, %q", got, err, test.want, test.no)
			}
		})
	}
}
