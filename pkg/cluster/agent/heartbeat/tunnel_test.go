// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// reports counts the reports that the tunnel triggered.
func reports(t *Tunnel) int {
	n := 0
	for {
		select {
		case <-t.changed:
			n++
		default:
			return n
		}
	}
}

func TestTunnel_TriggersAReportOnceItIsStable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tunnel := NewTunnel(clock.RealClock{})
		if tunnel.condition() != nil {
			t.Error("there is a condition before the state is known")
		}
		check := func(when string, wait time.Duration, want int) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			if got := reports(tunnel); got != want {
				t.Errorf("%s: %d reports, want %d", when, got, want)
			}
		}
		tunnel.Up(clusterv1beta1.ReasonTunnelViaHub)
		check("while it may still move", tunnelSettles-time.Millisecond, 0)
		tunnel.Up(clusterv1beta1.ReasonTunnelViaPort)
		check("right after it has moved", tunnelSettles-time.Millisecond, 0)
		check("when it has stayed", time.Millisecond, 1)
		tunnel.Up(clusterv1beta1.ReasonTunnelViaPort)
		check("when nothing has changed", time.Minute, 0)
		tunnel.Down(errors.New("refused"))
		check("when it is gone", tunnelSettles, 1)
		tunnel.Down(errors.New("no route"))
		check("when only the text differs", time.Minute, 0)
		if got := tunnel.condition().Message; !strings.HasSuffix(got, "no route") {
			t.Errorf("the next heartbeat would say %q, want the latest reason", got)
		}
		for range 100 {
			tunnel.Up(clusterv1beta1.ReasonTunnelViaHub)
			tunnel.Down(errors.New("refused"))
		}
		check("after it came and went a hundred times", time.Minute, 1)
	})
}

func TestJoinedReport_KeepsTheTunnelOutOfTheAgentsConditions(t *testing.T) {
	first := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	tunnel := NewTunnel(clock.RealClock{})
	imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	look := func() facts { return facts{health: health{ok: true}, tunnel: tunnel.condition()} }
	report := func(now time.Time) *metav1.Condition {
		imc.Status = joinedReport(imc, look(), now)
		var kinds []string
		for _, c := range imc.Status.AgentStatus[0].Conditions {
			kinds = append(kinds, c.Type)
		}
		if diff := cmp.Diff([]string{clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy}, kinds); diff != "" {
			t.Errorf("the agent's own conditions (-want +got):\n%s", diff)
		}
		return meta.FindStatusCondition(imc.Status.Conditions, clusterv1beta1.ConditionTunnelConnected)
	}
	imc.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, Conditions: []metav1.Condition{
		{Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionTrue, Reason: "OfTheVersionBefore"},
	}}}

	tunnel.Down(errors.New(strings.Repeat("x", 2*maxTunnelReason)))
	down := report(first)
	if down == nil || down.Status != metav1.ConditionFalse || down.Reason != clusterv1beta1.ReasonTunnelDown || down.ObservedGeneration != 3 {
		t.Fatalf("without a tunnel: %+v", down)
	}
	if len(down.Message) != maxTunnelReason {
		t.Errorf("the reason has %d bytes, want at most %d", len(down.Message), maxTunnelReason)
	}
	shown := imc.Status.DeepCopy()
	tunnel.Up(clusterv1beta1.ReasonTunnelViaHub)
	if up := report(first.Add(time.Second)); up.Status != metav1.ConditionTrue || up.Reason != clusterv1beta1.ReasonTunnelViaHub || up.Message == "" {
		t.Errorf("through the hub: %+v", up)
	}
	if !isDue(shown, &imc.Status) {
		t.Error("the report of a connected tunnel is not due")
	}
	tunnel.Up(clusterv1beta1.ReasonTunnelViaPort)
	if moved := report(first.Add(time.Minute)); moved.Reason != clusterv1beta1.ReasonTunnelViaPort || !moved.LastTransitionTime.Time.Equal(first.Add(time.Second)) {
		t.Errorf("moved to the port, still connected: %+v", moved)
	}
}

func TestJoinedReport_HasTheRightThatOpensTheTunnel(t *testing.T) {
	reported := func(tunnel *Tunnel) string {
		status := joinedReport(&clusterv1beta1.InternalMemberCluster{}, facts{tunnelRight: tunnel.right()}, time.Now())
		return status.Properties[clusterv1beta1.PropertyTunnelRight].Value
	}
	tunnel := NewTunnel(clock.RealClock{})
	if got := []string{reported(nil), reported(tunnel)}; got[0] != "" || got[1] != clusterv1beta1.TunnelRightEither {
		t.Errorf("before a tunnel was opened it is %q", got)
	}
	if tunnel.ByNamespace(); reported(tunnel) != clusterv1beta1.TunnelRightNamespace {
		t.Errorf("afterwards it is %q", reported(tunnel))
	}
	if tunnel.Forget(); reported(tunnel) != clusterv1beta1.TunnelRightEither {
		t.Errorf("of the next one it is %q", reported(tunnel))
	}
}
