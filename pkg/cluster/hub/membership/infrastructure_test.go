// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestWithInfrastructure_RejectsAgentsClaims(t *testing.T) {
	made, seen := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	zones := clusterv1beta1.PropertyName(clusterv1beta1.InfrastructurePrefix + "zones")
	spot := clusterv1beta1.PropertyName(clusterv1beta1.InfrastructurePrefix + "spot")
	for what, tc := range map[string]struct {
		annotation string
		want       properties
	}{
		"no annotation":              {"", properties{"nodes": {Value: "3"}}},
		"properties of the hub":      {`{"infrastructure.fleetgate.io/zones":"3"}`, properties{"nodes": {Value: "3"}, zones: {Value: "3", ObservationTime: made}}},
		"unchanged value":            {`{"infrastructure.fleetgate.io/zones":"1"}`, properties{"nodes": {Value: "3"}, zones: {Value: "1", ObservationTime: seen}}},
		"other names":                {`{"nodes":"99","fleetgate.io/x":"1"}`, properties{"nodes": {Value: "3"}}},
		"invalid JSON":               {`{"infrastructure`, properties{"nodes": {Value: "3"}}},
		"values that are no strings": {`{"infrastructure.fleetgate.io/zones":{"a":1}}`, properties{"nodes": {Value: "3"}}},
		"too large": {`{"infrastructure.fleetgate.io/zones":"` + strings.Repeat("1", maxInfrastructure) + `"}`,
			properties{"nodes": {Value: "3"}}},
	} {
		t.Run(what, func(t *testing.T) {
			mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made}}
			mc.Annotations = map[string]string{clusterv1beta1.AnnotationProperties: tc.annotation}
			mc.Status.Properties = properties{zones: {Value: "1", ObservationTime: seen}}
			reported := properties{"nodes": {Value: "3"}, zones: {Value: "1000"}, spot: {Value: "0"}}
			if diff := cmp.Diff(tc.want, withInfrastructure(reported, mc)); diff != "" {
				t.Errorf("Properties differ (-want +got):\n%s", diff)
			}
		})
	}
	mc := &clusterv1beta1.MemberCluster{}
	mc.Annotations = map[string]string{clusterv1beta1.AnnotationProperties: `{"infrastructure.fleetgate.io/zones":"3"}`}
	if got := withInfrastructure(nil, mc); len(got) != 1 {
		t.Errorf("properties without a report: %v", got)
	}
}
