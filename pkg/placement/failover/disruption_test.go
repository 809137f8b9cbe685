// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package failover

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// silence is how long the hub waits for a heartbeat.
const silence = 3 * time.Minute

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// fleet has that many members; the first ones are unreachable since noon.
func fleet(members, unreachable int) []clusterv1beta1.MemberCluster {
	all := make([]clusterv1beta1.MemberCluster, members)
	for i := range all {
		joined := metav1.Condition{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue}
		if i < unreachable {
			joined.Status = metav1.ConditionUnknown
		}
		all[i].Name = fmt.Sprintf("m-%d", i)
		all[i].Status.Conditions = []metav1.Condition{joined}
		all[i].Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(noon)}}
	}
	return all
}

func on(member string) []placementv1beta1.BindingObject {
	b := &placementv1beta1.ClusterResourceBinding{}
	b.Spec.TargetCluster, b.Spec.State = member, placementv1beta1.BindingBound
	return []placementv1beta1.BindingObject{b}
}

func TestCensus_DetectsDisconnectedHub(t *testing.T) {
	for _, tc := range []struct {
		members, unreachable int
		want                 bool
	}{
		{1, 0, false},
		{1, 1, false}, // No other member could take over.
		{2, 1, false},
		{2, 2, true},
		{3, 1, false},
		{3, 2, true},
		{10, 5, false},
		{10, 6, true},
		{1000, 549, false},
		{1000, 550, true},
	} {
		if got := censusOf(fleet(tc.members, tc.unreachable)).disrupted(); got != tc.want {
			t.Errorf("%d of %d members unreachable: disrupted %v, want %v", tc.unreachable, tc.members, got, tc.want)
		}
	}
	never := append(fleet(2, 1), make([]clusterv1beta1.MemberCluster, 8)...)
	if c := censusOf(never); c != (census{heard: 1, unreachable: 1}) {
		t.Errorf("members that never reported count: %+v", c)
	}
}

// The hub's load balancer is down for half an hour, and members reconnect one by one.
func TestDueOf_NothingAfterOutageOfTheHub(t *testing.T) {
	terms, w := Terms{After: 5 * time.Minute, Taints: []string{clusterv1beta1.TaintUnreachable}}, &watch{}
	down := fleet(10, 10)
	w.see(censusOf(down), noon.Add(3*time.Minute))
	if c := censusOf(down); !c.disrupted() {
		t.Fatalf("%+v", c)
	}
	for i, unreachable := range []int{9, 6, 5, 2, 1} {
		members, now := fleet(10, unreachable), noon.Add(30*time.Minute+time.Duration(i)*20*time.Second)
		members[0].Spec.Taints = []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnreachable}}
		c := censusOf(members)
		leaving, _ := dueOf(on("m-0"), members, terms, silence, w.see(c, now), now)
		if len(leaving) > 0 && !c.disrupted() {
			t.Errorf("%d unreachable members after the outage: %d bindings are due", unreachable, len(leaving))
		}
	}
	// A member that does not reconnect is left after its time.
	members, now := fleet(10, 1), noon.Add(40*time.Minute)
	if leaving, _ := dueOf(on("m-0"), members, terms, silence, w.see(censusOf(members), now), now); len(leaving) != 1 || leaving[0].ordered {
		t.Errorf("member that stays disconnected after the outage: %+v", leaving)
	}
}

// The hub was down for an hour, and had waited for the member's heartbeat for three minutes.
func TestDueOf_CountsOnlyWhileTheHubListens(t *testing.T) {
	members, terms := fleet(10, 1), Terms{After: 5 * time.Minute}
	unknown := noon.Add(time.Hour)
	members[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(unknown)
	if leaving, again := dueOf(on("m-0"), members, terms, silence, time.Time{}, unknown.Add(time.Second)); len(leaving) != 0 || again != 2*time.Minute-time.Second {
		t.Errorf("three minutes after the start of the hub: %d bindings are due, again after %s", len(leaving), again)
	}
	if leaving, _ := dueOf(on("m-0"), members, terms, silence, time.Time{}, unknown.Add(2*time.Minute)); len(leaving) != 1 {
		t.Errorf("five minutes after the start of the hub: %d bindings are due", len(leaving))
	}
	members[0].Spec.HeartbeatPeriodSeconds = 300
	if leaving, _ := dueOf(on("m-0"), members, terms, silence, time.Time{}, unknown); len(leaving) != 1 {
		t.Errorf("after two heartbeat periods of five minutes: %d bindings are due", len(leaving))
	}
}

func TestDueOf_MarksEvictionsThatUsersOrdered(t *testing.T) {
	members := fleet(2, 0)
	members[0].Spec.Taints = []clusterv1beta1.Taint{{Key: clusterv1beta1.TaintUnreachable}, {Key: "maintenance"}}
	terms := Terms{Taints: []string{clusterv1beta1.TaintUnreachable, "maintenance"}}
	if leaving, _ := dueOf(on("m-0"), members, terms, silence, noon, noon); len(leaving) != 1 || !leaving[0].ordered {
		t.Errorf("user's taint: %+v", leaving)
	}
}

func TestWatch_PacesEvictions(t *testing.T) {
	w, evicted := &watch{}, 0
	for at := time.Duration(0); at < 20*time.Second; at += 100 * time.Millisecond {
		if w.reserve(noon.Add(at)) == 0 {
			evicted++
		}
	}
	if want := int(20 * time.Second / evictionInterval); evicted != want {
		t.Errorf("%d evictions in 20 s, want %d", evicted, want)
	}
}
