// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
)

func TestRowsOfTable_ByColumnName(t *testing.T) {
	var table metav1.Table
	text := `{"metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name"},{"name":"Available"},{"name":"Scheduled"},{"name":"Reason"}],"rows":[
		{"cells":["a","True","True",""],"object":{"metadata":{"name":"a"}}},
		{"cells":["b",null,"True"],"object":{"metadata":{"name":"b","namespace":"team"}}},
		{"cells":["nothing","True","True","NothingSelected"],"object":{"metadata":{"name":"nothing"}}},
		{"cells":["c"],"object":{"metadata":{"name":"c"}}}]}`
	if err := json.Unmarshal([]byte(text), &table); err != nil {
		t.Fatal(err)
	}
	got, err := rowsOfTable(&table)
	if err != nil {
		t.Fatal(err)
	}
	want := []PlacementRow{{Name: "a", Scheduled: "True", AvailableStatus: "True", Available: true, version: "7"}, {Name: "team/b", Scheduled: "True", version: "7"},
		{Name: "nothing", Scheduled: "True", AvailableStatus: "True", Reason: "NothingSelected", version: "7"}, {Name: "c", version: "7"}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(PlacementRow{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestState_FirstProblem(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: message}
	}
	joined := func(change func(*clusterv1beta1.MemberCluster)) *clusterv1beta1.MemberCluster {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Status.Conditions = []metav1.Condition{
			condition(clusterv1beta1.ConditionReadyToJoin, metav1.ConditionTrue, ""), condition(clusterv1beta1.ConditionJoined, metav1.ConditionTrue, ""),
		}
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
			condition(clusterv1beta1.ConditionHealthy, metav1.ConditionTrue, ""),
			condition(clusterv1beta1.ConditionTunnelConnected, metav1.ConditionFalse, "the hub refused the tunnel"),
		}}}
		if change != nil {
			change(m)
		}
		return m
	}
	up := map[string]gatewayv1alpha1.ClusterGatewayStatus{"m": {Healthy: true}}
	for name, test := range map[string]struct {
		overview  Overview
		member    *clusterv1beta1.MemberCluster
		connected string
		why       string
	}{
		"healthy": {overview: Overview{Tunnels: up}, member: joined(nil), connected: Connected},
		"not approved": {overview: Overview{Tunnels: up}, connected: Connected, why: "kubectl fleetgate approve m",
			member: joined(func(m *clusterv1beta1.MemberCluster) {
				m.Spec.Taints = []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnapproved}}
			})},
		"no heartbeat": {overview: Overview{Tunnels: up}, connected: Connected, why: "Because: nothing heard",
			member: joined(func(m *clusterv1beta1.MemberCluster) {
				m.Status.Conditions[1] = condition(clusterv1beta1.ConditionJoined, metav1.ConditionUnknown, "nothing heard")
			})},
		"no tunnel": {overview: Overview{Tunnels: map[string]gatewayv1alpha1.ClusterGatewayStatus{"m": {HealthyReason: gatewayv1alpha1.HealthyReasonNotConnected}}},
			member: joined(nil), connected: NotConnected, why: "the hub refused the tunnel"},
		"outdated agent": {overview: Overview{Tunnels: up}, connected: Connected, why: "Because: upgrade it",
			member: joined(func(m *clusterv1beta1.MemberCluster) {
				m.Status.Conditions = append(m.Status.Conditions, condition(clusterv1beta1.ConditionPlacementsRetained, metav1.ConditionFalse, "nothing is"),
					condition(clusterv1beta1.ConditionAgentOutdated, metav1.ConditionTrue, "upgrade it"))
			})},
		"retained placements before outdated agent": {overview: Overview{Tunnels: up}, connected: Connected, why: "Because: release it",
			member: joined(func(m *clusterv1beta1.MemberCluster) {
				m.Status.Conditions = append(m.Status.Conditions, condition(clusterv1beta1.ConditionAgentOutdated, metav1.ConditionTrue, "upgrade it"),
					condition(clusterv1beta1.ConditionPlacementsRetained, metav1.ConditionTrue, "release it"))
			})},
		"failing placement": {overview: Overview{Tunnels: up, Failing: map[string][]string{"m": {"shop"}}}, member: joined(nil), connected: Connected, why: "why shop --member m"},
		"no gateway":        {member: joined(nil), connected: ConnectedQuery},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.overview.State(test.member)
			if got.Connected != test.connected || (test.why == "") != (got.Reason == "") || !strings.Contains(got.Reason, test.why) {
				t.Errorf("got %+v, want connected %s, why %q", got, test.connected, test.why)
			}
		})
	}
}

func TestState_LastSeenOfReportOrLease(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration) metav1.Time { return metav1.NewTime(noon.Add(after)) }
	member := func(name string) *clusterv1beta1.MemberCluster {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: at(0)}}
		return m
	}
	o := &Overview{Renewed: map[string]metav1.Time{"a": at(4 * time.Minute), "b": at(-time.Minute)}}
	for name, want := range map[string]metav1.Time{"a": at(4 * time.Minute), "b": at(0), "without a Lease": at(0)} {
		if state := o.State(member(name)); !state.LastSeen.Equal(&want) {
			t.Errorf("member %s was seen at %s, want %s", name, state.LastSeen, want)
		}
	}
}
