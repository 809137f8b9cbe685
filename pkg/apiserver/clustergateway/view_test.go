// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

func TestView_ComputesClusterGatewayFromMemberAndCredential(t *testing.T) {
	yes := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
	}
	joined := clusterv1beta1.MemberClusterStatus{
		Conditions:  yes(clusterv1beta1.ConditionJoined),
		AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: yes(clusterv1beta1.ConditionHealthy)}},
	}
	ailing := clusterv1beta1.MemberClusterStatus{Conditions: yes(clusterv1beta1.ConditionJoined)}
	cases := map[string]struct {
		status        clusterv1beta1.MemberClusterStatus
		hasCredential bool
		want          gatewayv1alpha1.ClusterGatewayStatus
	}{
		"Healthy":      {status: joined, hasCredential: true, want: gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}},
		"New":          {want: gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNotConnected}},
		"NoCredential": {status: joined, want: gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNoCredential}},
		"Ailing":       {status: ailing, hasCredential: true, want: gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonUnhealthy}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			member := memberAt("a", 3, "x")
			member.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}
			member.Status = tc.status
			got := view(state{member, credentialAt{present: tc.hasCredential, version: 2}})
			if diff := cmp.Diff(tc.want, got.Status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Annotations != nil || got.Labels["team"] != "x" || got.ResourceVersion != "3" {
				t.Errorf("got %+v", got.ObjectMeta)
			}
			if (got.Spec.Access.Credential != nil) != tc.hasCredential {
				t.Errorf("got credential %v", got.Spec.Access.Credential)
			}
		})
	}
}

func TestGatewayREST_ReportsMemberWithoutTunnelUnhealthy(t *testing.T) {
	yes := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue}}
	}
	member := memberAt("a", 3, "x")
	member.Status = clusterv1beta1.MemberClusterStatus{
		Conditions:  yes(clusterv1beta1.ConditionJoined),
		AgentStatus: []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: yes(clusterv1beta1.ConditionHealthy)}},
	}
	members := NewInventory()
	members.set(member, false)
	members.SetCredential("a", true, "2", false)
	healthy := gatewayv1alpha1.ClusterGatewayStatus{Healthy: true}
	disconnected := gatewayv1alpha1.ClusterGatewayStatus{HealthyReason: gatewayv1alpha1.HealthyReasonNotConnected}
	for name, tc := range map[string]struct {
		liveness Liveness
		want     gatewayv1alpha1.ClusterGatewayStatus
	}{
		"its tunnel is open":               {tunnelOf{reachable: true}, healthy},
		"its tunnel is lost":               {tunnelOf{}, disconnected},
		"its tunnel was lost a moment ago": {tunnelOf{expected: true}, healthy},
	} {
		t.Run(name, func(t *testing.T) {
			served := &gatewayREST{members: members, liveness: tc.liveness}
			one, err := served.Get(t.Context(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			all, err := served.List(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			listed := all.(*gatewayv1alpha1.ClusterGatewayList).Items[0]
			for read, got := range map[string]gatewayv1alpha1.ClusterGateway{"get": *one.(*gatewayv1alpha1.ClusterGateway), "list": listed} {
				if diff := cmp.Diff(tc.want, got.Status); diff != "" {
					t.Errorf("%s (-want +got):\n%s", read, diff)
				}
			}
		})
	}
}

// tunnelOf is the Liveness of a member.
type tunnelOf struct {
	Liveness
	reachable, expected bool
}

func (t tunnelOf) Reachable(string) bool { return t.reachable }

func (t tunnelOf) Expected(string) bool { return t.expected }

func TestState_VersionIsLargerOfMemberAndCredential(t *testing.T) {
	for version, s := range map[string]state{
		"3": {memberAt("a", 3, "x"), credentialAt{}},
		"4": {memberAt("a", 4, "x"), credentialAt{present: true, version: 2}},
		"7": {memberAt("a", 3, "x"), credentialAt{present: true, version: 7}},
		"9": {memberAt("a", 3, "x"), credentialAt{present: false, version: 9}},
	} {
		if got := view(s).ResourceVersion; got != version {
			t.Errorf("got version %s, want %s", got, version)
		}
	}
}
