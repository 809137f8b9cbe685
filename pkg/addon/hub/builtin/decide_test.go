// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

func TestAvailability_FollowsTheFeature(t *testing.T) {
	for name, tc := range map[string]struct {
		cluster       metav1.ConditionStatus
		token, tunnel bool
		want          [3]string // of managed-serviceaccount, cluster-proxy and cluster-gateway
	}{
		"all work":                    {"True", true, true, [3]string{"True", "True", "True"}},
		"no tunnel":                   {"True", true, false, [3]string{"True", "False", "False"}},
		"no token":                    {"True", false, true, [3]string{"False", "True", "False"}},
		"neither":                     {"True", false, false, [3]string{"False", "False", "False"}},
		"cluster without a heartbeat": {"Unknown", true, true, [3]string{"Unknown", "Unknown", "Unknown"}},
		"unhealthy API server":        {"False", true, true, [3]string{"Unknown", "Unknown", "Unknown"}},
		"a cluster that never was":    {"", true, true, [3]string{"Unknown", "Unknown", "Unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			known := facts{cluster: &clusterv1.ManagedCluster{}, member: &clusterv1beta1.MemberCluster{}}
			if tc.cluster != "" {
				known.cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: tc.cluster, Reason: "Because", Message: "of that"}}
			}
			if tc.token {
				known.account = &authenticationv1beta1.ManagedServiceAccount{}
				known.account.Status.Conditions = []metav1.Condition{{Type: authenticationv1beta1.ConditionTokenReported, Status: metav1.ConditionTrue}}
			}
			if tc.tunnel {
				known.member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionTrue}}
			}
			for i, addOn := range names() {
				var status addonv1alpha1.ManagedClusterAddOnStatus
				known.desiredStatus(&status, addOn)
				if got := status.Conditions[0]; string(got.Status) != tc.want[i] || got.Reason == "" {
					t.Errorf("%s is %+v, want %s", addOn, got, tc.want[i])
				}
				if (addOn == managedServiceAccount) != (status.Namespace != "") || status.HealthCheck.Mode != addonv1alpha1.HealthCheckCustomized {
					t.Errorf("%s has status %+v", addOn, status)
				}
			}
		})
	}
}
