// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// watched is a member as the hub's status controller sees it, with separate clocks for both sides.
type watched struct {
	reconciler *StatusReconciler
	hub        *clocktesting.FakeClock
	// skew is how far the agent's clock is ahead of the hub's.
	skew   time.Duration
	mc     *clusterv1beta1.MemberCluster
	imc    *clusterv1beta1.InternalMemberCluster
	lease  *coordinationv1.Lease
	writes int
}

func watch(skew time.Duration) *watched {
	w := &watched{
		hub: clocktesting.NewFakeClock(time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)), skew: skew,
		mc:    &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Generation: 1}},
		imc:   &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}},
		lease: &coordinationv1.Lease{},
	}
	w.imc.Spec.HeartbeatPeriodSeconds = 60
	w.restart()
	return w
}

// restart simulates another gateway without any state.
func (w *watched) restart() { w.reconciler = &StatusReconciler{Clock: w.hub} }

func (w *watched) report() {
	w.imc.ResourceVersion += "1"
	w.imc.Status.AgentStatus = agentSays(metav1.ConditionTrue, 1)
	w.imc.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.NewTime(w.hub.Now().Add(w.skew))
	w.look()
}

func (w *watched) renew() {
	w.lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(w.hub.Now().Add(w.skew)))
	w.look()
}

func (w *watched) look() decision {
	d := w.reconciler.decide(w.mc, w.imc, w.lease)
	if !equality.Semantic.DeepEqual(w.mc.Status, d.status) {
		w.writes++
	}
	w.mc.Status = d.status
	w.reconciler.heartbeats.show(w.mc.Name, d.from)
	return d
}

// pass advances the time, with a Lease renewal each minute.
func (w *watched) pass(minutes int) {
	for range minutes {
		w.hub.Step(time.Minute)
		w.renew()
	}
}

func (w *watched) joined() metav1.ConditionStatus { return joinedStatus(w.mc.Status.Conditions) }

func (w *watched) heartbeat() time.Time {
	return w.mc.Status.AgentStatusOf(clusterv1beta1.MemberAgent).LastReceivedHeartbeat.Time
}

func TestStatus_LeaseKeepsMemberJoinedWithFewWrites(t *testing.T) {
	for name, skew := range map[string]time.Duration{"clocks agree": 0, "an hour behind": -time.Hour, "an hour ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := watch(skew)
			w.report()
			if w.joined() != metav1.ConditionTrue {
				t.Fatalf("Joined is %s after the first report", w.joined())
			}
			w.writes = 0
			w.pass(60)
			if w.joined() != metav1.ConditionTrue {
				t.Errorf("Joined is %s with a renewed Lease", w.joined())
			}
			if age := w.hub.Since(w.heartbeat()); age < 0 || age >= heartbeatInterval {
				t.Errorf("the heartbeat is %s old by the hub's clock", age)
			}
			if w.writes != 12 {
				t.Errorf("%d writes in an hour, want one every 5 minutes", w.writes)
			}
		})
	}
}

func TestStatus_MissingHeartbeatGivesUnknown(t *testing.T) {
	w := watch(0)
	w.report()
	w.hub.Step(DefaultSilence - time.Second)
	if d := w.look(); d.left != time.Second || w.joined() != metav1.ConditionTrue {
		t.Errorf("a second before the limit: %s left, Joined %s", d.left, w.joined())
	}
	w.hub.Step(time.Second)
	if d := w.look(); !d.silent || w.joined() != metav1.ConditionUnknown {
		t.Fatalf("at the limit: silent %v, Joined %s", d.silent, w.joined())
	}
	shown := meta.FindStatusCondition(w.mc.Status.Conditions, clusterv1beta1.ConditionJoined)
	if shown.Reason != clusterv1beta1.ReasonMemberClusterJoinStateUnknown {
		t.Errorf("reason %q", shown.Reason)
	}

	w.restart()
	if d := w.look(); !d.silent || w.joined() != metav1.ConditionUnknown {
		t.Errorf("restarted gateway reports a disconnected member as joined")
	}
	w.renew()
	if w.joined() != metav1.ConditionTrue {
		t.Errorf("Joined is %s after a new beat", w.joined())
	}
}

func TestStatus_DisconnectedMemberShowsLastLease(t *testing.T) {
	w := watch(time.Hour)
	w.report()
	w.pass(2)
	last := w.hub.Now()
	w.writes = 0
	w.hub.Step(DefaultSilence)
	if d := w.look(); !d.silent || w.writes != 1 {
		t.Fatalf("silent %v after %d writes", d.silent, w.writes)
	}
	if !w.heartbeat().Equal(last) {
		t.Errorf("last heartbeat was %s, status shows %s", last, w.heartbeat())
	}
	if since, silent := w.mc.SilentSince(); !silent || !since.Time.Equal(last) {
		t.Errorf("disconnected since %s (%v), want %s", since, silent, last)
	}
	forged := metav1.NewTime(time.Unix(1000, 0))
	w.mc.Status.AgentStatus[0].LastReceivedHeartbeat = forged
	if w.look(); !w.heartbeat().Equal(forged.Time) {
		t.Errorf("manual change became %s", w.heartbeat())
	}
}

func TestStatus_RestartedGatewayWaitsFullTime(t *testing.T) {
	w := watch(-time.Hour)
	w.report()
	w.pass(10)
	w.restart()
	writes := w.writes
	if d := w.look(); d.left != DefaultSilence || w.joined() != metav1.ConditionTrue {
		t.Errorf("%s left, Joined %s", d.left, w.joined())
	}
	if w.writes != writes {
		t.Error("write without a change")
	}
	w.hub.Step(DefaultSilence)
	if w.look(); w.joined() != metav1.ConditionUnknown {
		t.Errorf("Joined is %s without a heartbeat", w.joined())
	}
}

func TestStatus_RespectsLongHeartbeatPeriod(t *testing.T) {
	w := watch(0)
	w.imc.Spec.HeartbeatPeriodSeconds = 600
	w.report()
	w.hub.Step(20*time.Minute - time.Second)
	if d := w.look(); d.silent {
		t.Error("disconnected within two periods")
	}
}

func TestStatus_ManualChangeStaysUntilNextReport(t *testing.T) {
	w := watch(0)
	w.report()
	w.hub.Step(time.Minute)
	forged := metav1.NewTime(time.Unix(1000, 0))
	w.mc.Status.AgentStatus[0].LastReceivedHeartbeat = forged
	w.mc.Status.AgentStatus[0].Conditions[0].Status = metav1.ConditionFalse
	w.mc.Generation = 2

	w.look()
	agent := w.mc.Status.AgentStatus[0]
	if !agent.LastReceivedHeartbeat.Equal(&forged) || agent.Conditions[0].Status != metav1.ConditionFalse {
		t.Errorf("new generation overwrote a manual change: %+v", agent)
	}
	if agent.Conditions[0].ObservedGeneration != 2 {
		t.Errorf("generation of the conditions = %d", agent.Conditions[0].ObservedGeneration)
	}
	w.report()
	if w.joined() != metav1.ConditionTrue || w.mc.Status.AgentStatus[0].LastReceivedHeartbeat.Equal(&forged) {
		t.Errorf("report is missing: %+v", w.mc.Status.AgentStatus[0])
	}
}

func TestDesiredTaints_OnlyDisconnectedMembers(t *testing.T) {
	own := []clusterv1beta1.Taint{{Key: "own", Effect: "NoSchedule"}}
	tainted := desiredTaints(own, true)
	if len(tainted) != 2 || tainted[1].Key != clusterv1beta1.TaintUnreachable {
		t.Errorf("disconnected: %v", tainted)
	}
	if again := desiredTaints(tainted, true); len(again) != 2 {
		t.Errorf("tainted twice: %v", again)
	}
	if free := desiredTaints(tainted, false); len(free) != 1 || free[0].Key != "own" {
		t.Errorf("reconnected: %v", free)
	}
}

func TestRefuseIdentity(t *testing.T) {
	tests := map[string]struct {
		kind, name, namespace string
		refused               bool
	}{
		"user":                                  {"User", "jane", "", false},
		"user with a namespace, as in examples": {"User", "jane", "fleet-system", false},
		"group":                                 {"Group", "ops", "", false},
		"ServiceAccount":                        {"ServiceAccount", "agent", "ops", false},
		"ServiceAccount without a namespace":    {"ServiceAccount", "agent", "", true},
		"nobody":                                {"User", "", "", true},
		"unknown kind":                          {"Robot", "r2", "", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			identity := clusterv1beta1.MemberClusterSpec{}.Identity
			identity.Kind, identity.Name, identity.Namespace = tc.kind, tc.name, tc.namespace
			if refused := refuseIdentity(identity); (refused != nil) != tc.refused {
				t.Errorf("got %v, want refused: %v", refused, tc.refused)
			}
		})
	}
}

func TestEarly(t *testing.T) {
	told, ready := &clusterv1beta1.MemberCluster{}, &clusterv1beta1.MemberCluster{}
	meta.SetStatusCondition(&told.Status.Conditions, readyToJoin(nil))
	meta.SetStatusCondition(&told.Status.Conditions, joinedCondition(nil))
	meta.SetStatusCondition(&ready.Status.Conditions, readyToJoin(nil))
	silent, reported := &clusterv1beta1.InternalMemberCluster{}, &clusterv1beta1.InternalMemberCluster{}
	reported.Status.AgentStatus = agentSays(metav1.ConditionTrue, 1)
	for name, tc := range map[string]struct {
		mc   *clusterv1beta1.MemberCluster
		imc  *clusterv1beta1.InternalMemberCluster
		age  time.Duration
		want time.Duration
	}{
		"no report":               {ready, silent, time.Second, firstReport - time.Second},
		"no report in time":       {ready, silent, firstReport, 0},
		"agent's clock is ahead":  {ready, silent, -time.Hour, firstReport},
		"agent has reported":      {ready, reported, time.Second, 0},
		"report before ready":     {&clusterv1beta1.MemberCluster{}, reported, time.Second, readySoon},
		"never ready":             {&clusterv1beta1.MemberCluster{}, reported, firstReport, 0},
		"condition set, new seat": {told, silent, time.Second, 0},
	} {
		if got := early(tc.mc, tc.imc, tc.age); got != tc.want {
			t.Errorf("%s: early() = %s, want %s", name, got, tc.want)
		}
	}
}

func TestNamespacesAreShownAsLongAsTheAgentTellsThem(t *testing.T) {
	const collected = clusterv1beta1.ConditionNamespacesCollected
	w := watch(0)
	w.imc.Status.Namespaces = map[string]string{"web": "web-work", strings.Repeat("n", 64): "", "long": strings.Repeat("w", 254)}
	w.imc.Status.Conditions = []metav1.Condition{{Type: collected, Status: metav1.ConditionTrue, Reason: "Succeeded"}}
	w.report()
	if !equality.Semantic.DeepEqual(w.mc.Status.Namespaces, map[string]string{"web": "web-work"}) || !meta.IsStatusConditionTrue(w.mc.Status.Conditions, collected) {
		t.Errorf("shown are %v, %v", w.mc.Status.Namespaces, w.mc.Status.Conditions)
	}
	w.mc.Status.Namespaces = map[string]string{"bank": ""}
	w.mc.Generation = 2
	if w.look(); len(w.mc.Status.Namespaces) != 1 || !meta.IsStatusConditionTrue(w.mc.Status.Conditions, collected) {
		t.Errorf("what was written by hand did not stay: %v, %v", w.mc.Status.Namespaces, w.mc.Status.Conditions)
	}
	for i := range 2 * maxNamespaces {
		w.imc.Status.Namespaces[fmt.Sprintf("n-%03d", i)] = ""
	}
	if w.report(); len(w.mc.Status.Namespaces) != maxNamespaces {
		t.Errorf("%d namespaces are shown", len(w.mc.Status.Namespaces))
	}

	w.imc.Status.Namespaces, w.imc.Status.Conditions = nil, nil // Another agent, which does not collect them.
	if w.report(); len(w.mc.Status.Namespaces) > 0 || meta.FindStatusCondition(w.mc.Status.Conditions, collected) != nil {
		t.Errorf("shown are still %v, %v", w.mc.Status.Namespaces, w.mc.Status.Conditions)
	}
}
