// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"slices"
	"testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestReleasedIDs_ReadsThePreviousKeyOnlyWithoutTheNewOne(t *testing.T) {
	const current, previous = clusterv1beta1.AnnotationRelease, clusterv1beta1.DeprecatedAnnotationLetGo
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        []string
	}{
		"neither key":      {nil, []string{""}},
		"the new key":      {map[string]string{current: "1,2"}, []string{"1", "2"}},
		"the previous key": {map[string]string{previous: "1,2"}, []string{"1", "2"}},
		"both keys":        {map[string]string{current: "1", previous: "2"}, []string{"1"}},
	} {
		member := &clusterv1beta1.InternalMemberCluster{}
		member.Annotations = tc.annotations
		if got := ReleasedIDs(member); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}
