// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
)

func agentSays(joined metav1.ConditionStatus, generation int64) []clusterv1beta1.AgentStatus {
	return []clusterv1beta1.AgentStatus{{
		Type:       clusterv1beta1.MemberAgent,
		Conditions: []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: joined, Reason: "X", ObservedGeneration: generation}},
	}}
}

func TestRefuseName(t *testing.T) {
	tests := map[string]struct{ name, want string }{
		"a DNS label":    {"member-1", ""},
		"longest name":   {strings.Repeat("x", 50), ""},
		"too long":       {strings.Repeat("x", 51), clusterv1beta1.ReasonMemberClusterNameTooLong},
		"name with dots": {"a.b", ReasonNameInvalid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if refused := refuseName(identity.FleetSeats(), tc.name); refused != nil {
				got = refused.Reason
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRefuseNamespace(t *testing.T) {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "uid"}}
	owned := func(uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: "MemberCluster", Name: "a", UID: mc.UID, Controller: ptr.To(uid == "uid")}}
	}
	now := metav1.Now()
	tests := map[string]struct {
		meta    metav1.ObjectMeta
		refused bool
	}{
		"own namespace":              {metav1.ObjectMeta{OwnerReferences: owned("uid")}, false},
		"own namespace, terminating": {metav1.ObjectMeta{OwnerReferences: owned("uid"), DeletionTimestamp: &now}, true},
		"namespace without an owner": {metav1.ObjectMeta{}, true},
		"namespace of another owner": {metav1.ObjectMeta{OwnerReferences: owned("other")}, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if refused := refuseNamespace(mc, &corev1.Namespace{ObjectMeta: tc.meta}); (refused != nil) != tc.refused {
				t.Errorf("got %v, want refused: %v", refused, tc.refused)
			}
		})
	}
}

func TestLeaveWait(t *testing.T) {
	deleted := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		agents []clusterv1beta1.AgentStatus
		since  time.Duration
		want   time.Duration
	}{
		"joined agent":                   {agentSays(metav1.ConditionTrue, 2), time.Minute, 14 * time.Minute},
		"agent that cannot leave":        {agentSays(metav1.ConditionUnknown, 2), time.Minute, 14 * time.Minute},
		"agent that has left":            {agentSays(metav1.ConditionFalse, 2), time.Minute, 0},
		"report from before the request": {agentSays(metav1.ConditionFalse, 1), time.Minute, 14 * time.Minute},
		"agent that never reported":      {nil, 0, 0},
		"time limit reached":             {agentSays(metav1.ConditionTrue, 2), time.Hour, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			imc.Status.AgentStatus = tc.agents
			if got := leaveWait(imc, deleted, deleted.Add(tc.since), 15*time.Minute); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPendingWait(t *testing.T) {
	deleted := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	refused := errors.New("refused")
	says := func(text string, err error) func(context.Context, string) (string, error) {
		return func(_ context.Context, member string) (string, error) {
			if member != "m" {
				t.Errorf("Pending(%q)", member)
			}
			return text, err
		}
	}
	for name, tc := range map[string]struct {
		pending func(context.Context, string) (string, error)
		agents  []clusterv1beta1.AgentStatus
		state   clusterv1beta1.ClusterState
		gone    bool
		since   time.Duration
		want    time.Duration
		err     error
	}{
		"no Pending function":        {agents: agentSays(metav1.ConditionTrue, 2)},
		"nothing pending":            {pending: says("", nil), agents: agentSays(metav1.ConditionTrue, 2)},
		"work pending":               {pending: says("works", nil), agents: agentSays(metav1.ConditionTrue, 2), want: pendingPoll},
		"just before the time limit": {pending: says("works", nil), agents: agentSays(metav1.ConditionTrue, 2), since: 15*time.Minute - time.Second, want: time.Second},
		"time limit reached":         {pending: says("works", nil), agents: agentSays(metav1.ConditionTrue, 2), since: 15 * time.Minute},
		"already asked to leave":     {pending: says("works", nil), agents: agentSays(metav1.ConditionTrue, 2), state: clusterv1beta1.ClusterStateLeave},
		"agent never reported":       {pending: says("works", nil)},
		"annotated as gone":          {pending: says("works", nil), agents: agentSays(metav1.ConditionTrue, 2), gone: true},
		"Pending fails":              {pending: says("", refused), agents: agentSays(metav1.ConditionTrue, 2), err: refused},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", DeletionTimestamp: &metav1.Time{Time: deleted}}}
			if tc.gone {
				mc.Annotations = map[string]string{clusterv1beta1.AnnotationGone: "true"}
			}
			imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			imc.Spec.State, imc.Status.AgentStatus = tc.state, tc.agents
			r := &Reconciler{Pending: tc.pending, Clock: testingclock.NewFakePassiveClock(deleted.Add(tc.since))}
			got, err := r.pendingWait(t.Context(), mc, imc)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestJoinedCondition(t *testing.T) {
	tests := map[string]struct {
		agents []clusterv1beta1.AgentStatus
		status metav1.ConditionStatus
		reason string
	}{
		"joined":       {agentSays(metav1.ConditionTrue, 1), metav1.ConditionTrue, clusterv1beta1.ReasonMemberClusterJoined},
		"left":         {agentSays(metav1.ConditionFalse, 1), metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterLeft},
		"no condition": {[]clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}, metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterJoinStateUnknown},
		"no agent":     {nil, metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterJoinStateUnknown},
		"other agent":  {[]clusterv1beta1.AgentStatus{{Type: "Other"}}, metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterJoinStateUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := joinedCondition(tc.agents)
			if got.Status != tc.status || got.Reason != tc.reason {
				t.Errorf("got %s/%s, want %s/%s", got.Status, got.Reason, tc.status, tc.reason)
			}
		})
	}
}

func TestDesiredStatus_LimitsReportAndKeepsHubConditions(t *testing.T) {
	mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	meta.SetStatusCondition(&mc.Status.Conditions, metav1.Condition{
		Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionTrue, Reason: "Hub",
	})
	report := &clusterv1beta1.InternalMemberClusterStatus{
		Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{"huge": {Value: strings.Repeat("x", maxPropertyValueLength+1)}},
		Conditions: []metav1.Condition{
			{Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionFalse, Reason: "Forged"},
			{Type: "PropertiesCollected", Status: metav1.ConditionTrue, Reason: "X", Message: strings.Repeat("x", maxMessageLength+1)},
		},
		AgentStatus: agentSays(metav1.ConditionTrue, 3),
	}
	for i := range maxProperties + 10 {
		report.Properties[clusterv1beta1.PropertyName(fmt.Sprintf("p-%03d", i))] = clusterv1beta1.PropertyValue{Value: "1"}
	}
	for i := range maxAgents + 10 {
		report.AgentStatus = append(report.AgentStatus, clusterv1beta1.AgentStatus{Type: clusterv1beta1.AgentType(fmt.Sprint(i))})
	}

	status := desiredStatus(mc, report)

	if _, ok := status.Properties["huge"]; ok || len(status.Properties) != maxProperties {
		t.Errorf("%d properties, with the huge one: %v", len(status.Properties), ok)
	}
	if len(status.AgentStatus) != maxAgents {
		t.Errorf("%d agents", len(status.AgentStatus))
	}
	if ready := meta.FindStatusCondition(status.Conditions, clusterv1beta1.ConditionReadyToJoin); ready.Reason != "Hub" {
		t.Errorf("member changed ReadyToJoin: %+v", ready)
	}
	if collected := meta.FindStatusCondition(status.Conditions, "PropertiesCollected"); collected == nil || len(collected.Message) != maxMessageLength {
		t.Errorf("the member's own condition: %+v", collected)
	}
	joined := meta.FindStatusCondition(status.Conditions, clusterv1beta1.ConditionJoined)
	if joined == nil || joined.Status != metav1.ConditionTrue || joined.ObservedGeneration != 7 {
		t.Errorf("Joined: %+v", joined)
	}
	if got := status.AgentStatus[0].Conditions[0].ObservedGeneration; got != 7 {
		t.Errorf("generation of the agent's conditions = %d, want the MemberCluster's", got)
	}
}

func TestDesiredStatus_MovesTunnelConditionToMember(t *testing.T) {
	tunnel := func(reason string) metav1.Condition {
		return metav1.Condition{Type: clusterv1beta1.ConditionTunnelConnected, Status: metav1.ConditionTrue, Reason: reason}
	}
	now, before := agentSays(metav1.ConditionTrue, 3), agentSays(metav1.ConditionTrue, 3)
	before[0].Conditions = append(before[0].Conditions, tunnel("PreviousVersion"))
	tests := map[string]struct {
		report clusterv1beta1.InternalMemberClusterStatus
		want   string
	}{
		"current version":                     {clusterv1beta1.InternalMemberClusterStatus{AgentStatus: now, Conditions: []metav1.Condition{tunnel("Now")}}, "Now"},
		"previous version":                    {clusterv1beta1.InternalMemberClusterStatus{AgentStatus: before}, "PreviousVersion"},
		"rolled back to the previous version": {clusterv1beta1.InternalMemberClusterStatus{AgentStatus: before, Conditions: []metav1.Condition{tunnel("Stale")}}, "PreviousVersion"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := desiredStatus(&clusterv1beta1.MemberCluster{}, &tt.report)
			if shown := meta.FindStatusCondition(got.Conditions, clusterv1beta1.ConditionTunnelConnected); shown == nil || shown.Reason != tt.want {
				t.Errorf("condition = %+v, want reason %s", shown, tt.want)
			}
			if len(got.AgentStatus[0].Conditions) != len(now[0].Conditions) {
				t.Errorf("the agent's own conditions are %+v", got.AgentStatus[0].Conditions)
			}
		})
	}
}

func TestDesiredStatus_KeepsAgentStatusWithoutReport(t *testing.T) {
	mc := &clusterv1beta1.MemberCluster{}
	mc.Status.AgentStatus = agentSays(metav1.ConditionTrue, 1)
	got := desiredStatus(mc, &clusterv1beta1.InternalMemberClusterStatus{})
	if diff := cmp.Diff(mc.Status.AgentStatus, got.AgentStatus); diff != "" {
		t.Errorf("agentStatus (-want +got):\n%s", diff)
	}
}

func TestSubjectOf(t *testing.T) {
	tests := map[string]struct{ identity, want rbacv1.Subject }{
		"a user":            {rbacv1.Subject{Kind: "User", Name: "a"}, rbacv1.Subject{Kind: "User", Name: "a", APIGroup: rbacv1.GroupName}},
		"a group":           {rbacv1.Subject{Kind: "Group", Name: "a"}, rbacv1.Subject{Kind: "Group", Name: "a", APIGroup: rbacv1.GroupName}},
		"a service account": {rbacv1.Subject{Kind: "ServiceAccount", Name: "a", Namespace: "b"}, rbacv1.Subject{Kind: "ServiceAccount", Name: "a", Namespace: "b"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, subjectOf(tc.identity)); diff != "" {
				t.Errorf("subject (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClusterRightsOf(t *testing.T) {
	type properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue
	now := metav1.Now()
	at := func(value string, ago time.Duration) clusterv1beta1.PropertyValue {
		return clusterv1beta1.PropertyValue{Value: value, ObservationTime: metav1.NewTime(now.Add(-ago))}
	}
	const version, right = clusterv1beta1.PropertyAgentVersion, clusterv1beta1.PropertyTunnelRight
	tests := map[string]struct {
		reported properties
		want     clusterRights
	}{
		"no report":                                 {nil, rightsUnknown},
		"agent of another product":                  {properties{clusterv1beta1.PropertyNodeCount: at("3", 0)}, rightsUnknown},
		"agent of the previous version":             {properties{version: at("v0.1.0", 0)}, rightsNeeded},
		"agent that tries without":                  {properties{version: at("v0.2.0", 0), right: at("either", 0)}, rightsUnknown},
		"agent that works without":                  {properties{version: at("v0.2.0", 0), right: at("namespace", 0)}, rightsUseless},
		"agent rolled back to the previous version": {properties{version: at("v0.1.0", 0), right: at("namespace", time.Minute)}, rightsNeeded},
		"unknown value":                             {properties{version: at("v0.9.0", 0), right: at("none", 0)}, rightsUnknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := clusterRightsOf(tt.reported); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

func TestReleasedIDs_JoinsIDsOfBothKeys(t *testing.T) {
	const current, previous = clusterv1beta1.AnnotationRelease, clusterv1beta1.DeprecatedAnnotationLetGo
	for want, annotations := range map[string]map[string]string{
		"":      {current: ""},
		"1,2":   {current: "1,2"},
		"3":     {previous: "3"},
		"1,2,3": {current: "1,2", previous: "3"},
	} {
		mc := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		if got := releasedIDs(mc); got != want {
			t.Errorf("%v: got %q, want %q", annotations, got, want)
		}
	}
}
