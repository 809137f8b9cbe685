// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"testing"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

func TestNames(t *testing.T) {
	for _, tc := range []struct {
		names []string
		want  string
	}{
		{nil, ""}, {[]string{"a", "b"}, "a, b"}, {[]string{"a", "b", "c", "d", "e"}, "a, b and 3 more"},
	} {
		if got := refusal.Names(tc.names, 2); got != tc.want {
			t.Errorf("Names(%v) = %q, want %q", tc.names, got, tc.want)
		}
	}
}
