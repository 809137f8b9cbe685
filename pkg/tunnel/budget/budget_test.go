// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import "testing"

func TestBudget_CountsUnreadBytes(t *testing.T) {
	type view struct{ within, exceeded, relaxed bool }
	b := New(100)
	for _, step := range []struct {
		add  int
		used int64
		want view
	}{
		{49, 49, view{within: true, relaxed: true}},
		{51, 100, view{within: true}},
		{1, 101, view{exceeded: true}},
		{-52, 49, view{within: true, relaxed: true}},
	} {
		got := view{b.Add(step.add), b.Exceeded(), b.Relaxed()}
		if got != step.want || b.Used() != step.used {
			t.Errorf("after %+d of 100 bytes it holds %d and says %+v, want %d and %+v", step.add, b.Used(), got, step.used, step.want)
		}
	}
}
