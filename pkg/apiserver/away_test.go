// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/tunnel"
)

func TestProxy_NoRetryAfterRestartForLongDisconnectedMember(t *testing.T) {
	for name, tc := range map[string]struct {
		joined     metav1.ConditionStatus
		retryAfter string
	}{
		"connected until the restart": {metav1.ConditionTrue, "1"},
		"silent for days":             {metav1.ConditionUnknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMember(t, http.HandlerFunc(echo))
			g := newGateway(t, map[string]*member{"m1": m}, func(c *apiserver.Config) {
				begun, err := tunnel.NewRegistry(tunnel.Options{})
				if err != nil {
					t.Fatal(err)
				}
				c.Liveness = begun
			})
			m.disconnect()
			g.inform.handler.OnUpdate(nil, withJoined(memberCluster("m1", 20), tc.joined))
			res := g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces", "jane", nil)
			wantCode(t, res, http.StatusServiceUnavailable)
			if got := res.Header.Get("Retry-After"); got != tc.retryAfter {
				t.Errorf("Retry-After is %q, want %q", got, tc.retryAfter)
			}
		})
	}
}

// withJoined returns a member whose agent has reported, with the hub's condition Joined.
func withJoined(m *clusterv1beta1.MemberCluster, joined metav1.ConditionStatus) *clusterv1beta1.MemberCluster {
	m.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: joined}}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
	return m
}
