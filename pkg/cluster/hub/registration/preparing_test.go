// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestPreparing_EndsDespiteClockSkew(t *testing.T) {
	made := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"just created":    {made, preparation},
		"half way":        {made.Add(preparation / 2), preparation / 2},
		"at its end":      {made.Add(preparation), 0},
		"long ago":        {made.Add(preparation + time.Hour), -time.Hour},
		"clock far ahead": {made.Add(-time.Hour), preparation},
	} {
		got := preparing(clocktesting.NewFakePassiveClock(tc.now), &metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)})
		if got != tc.want {
			t.Errorf("%s: preparing() = %s, want %s", name, got, tc.want)
		}
	}
}

func TestIsExpected(t *testing.T) {
	claimed := &registrationv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationKey: "sha256:x"}}}
	silent, reported := &clusterv1beta1.MemberCluster{}, &clusterv1beta1.MemberCluster{}
	reported.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
	for name, tc := range map[string]struct {
		cluster *registrationv1alpha1.Cluster
		mc      *clusterv1beta1.MemberCluster
		want    bool
	}{
		"no request":                {&registrationv1alpha1.Cluster{}, nil, false},
		"registered, no member yet": {claimed, nil, true},
		"member created":            {claimed, silent, true},
		"agent has reported":        {claimed, reported, false},
		"member without a request":  {&registrationv1alpha1.Cluster{}, silent, true},
	} {
		if got := isExpected(tc.cluster, tc.mc); got != tc.want {
			t.Errorf("%s: isExpected = %t, want %t", name, got, tc.want)
		}
	}
}
