// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetmetrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var since = metav1.NewTime(time.Unix(1_700_000_000, 0))

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: since}
}

func member(name string, joined, healthy metav1.ConditionStatus) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if joined != "" {
		m.Status.Conditions = []metav1.Condition{condition(clusterv1beta1.ConditionJoined, joined, "x")}
	}
	if healthy != "" {
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent,
			Conditions: []metav1.Condition{condition(clusterv1beta1.ConditionHealthy, healthy, "x")}}}
	}
	return m
}

func placement(name string, conditions ...metav1.Condition) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: since}}
	for i := range conditions {
		conditions[i].Type = p.ConditionType(conditions[i].Type)
	}
	p.Status.Conditions = conditions
	return p
}

func work(name string, conditions ...metav1.Condition) *placementv1beta1.Work {
	return &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: name}, Status: placementv1beta1.WorkStatus{Conditions: conditions}}
}

func run(name string, conditions ...metav1.Condition) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: placementv1beta1.UpdateRunStatus{Conditions: conditions}}
}

func eviction(name string, conditions ...metav1.Condition) *placementv1beta1.ClusterResourcePlacementEviction {
	return &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: placementv1beta1.PlacementEvictionStatus{Conditions: conditions}}
}

func hub(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authenticationv1beta1.AddToScheme, clusterv1beta1.AddToScheme, placementv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

const (
	yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

	isScheduled, isApplied, isAvailable = placementv1beta1.ConditionScheduled, placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable
)

func fleet() []client.Object {
	expires := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: "cluster-gateway"}}
	expires.Status.ExpirationTimestamp = &since
	expires.Status.TokenSecretRef = &authenticationv1beta1.SecretRef{Name: expires.Name, LastRefreshTimestamp: metav1.NewTime(since.Add(-time.Hour))}
	unnamed := placement("unnamed", condition(isScheduled, unknown, "SchedulePending"))
	unnamed.Spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed}
	newRun := run("new")
	newRun.CreationTimestamp = since
	stopped := run("stopped", condition("Initialized", yes, "x"), condition("Progressing", no, placementv1beta1.ReasonUpdateRunStopped))
	stopped.Spec.State = placementv1beta1.UpdateRunStop
	return []client.Object{
		member("a", yes, yes), member("b", yes, no), member("c", unknown, yes), member("d", "", ""), member("e", no, yes),
		placement("done", condition(isScheduled, yes, "x"), condition(isApplied, yes, "x"), condition(isAvailable, yes, "x")),
		placement("new"),
		placement("refused", condition(isScheduled, yes, "x"), condition(isApplied, no, "ApplyFailed")),
		work("available", condition(isApplied, yes, "x"), condition(isAvailable, yes, "x")),
		work("unavailable", condition(isApplied, yes, "x"), condition(isAvailable, no, "x")),
		work("failed", condition(isApplied, no, "x")), work("pending"),
		work("compared", condition(placementv1beta1.ConditionDiffReported, yes, "x")),
		placement("external", condition(isScheduled, yes, "x"),
			condition(placementv1beta1.ConditionRolloutStarted, unknown, placementv1beta1.ReasonRolloutControlledByExternalController)),
		unnamed,
		newRun, stopped, run("waiting", condition("Initialized", yes, "x"), condition("Progressing", no, placementv1beta1.ReasonUpdateRunWaiting)),
		run("failed", condition("Progressing", no, "x"), condition("Succeeded", no, "x")),
		eviction("refused", condition("Valid", no, "x")), eviction("new"),
		expires, &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-b", Name: "cluster-gateway"}},
		&authenticationv1beta1.ManagedServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "x"}},
	}
}

func TestCollector_ReportsStatesOfTheFleet(t *testing.T) {
	const want = `
# HELP fleet_workload_eviction_complete 1 if the eviction is complete, otherwise 0. The labels have its result. Same name as in KubeFleet.
# TYPE fleet_workload_eviction_complete gauge
fleet_workload_eviction_complete{isCompleted="false",isValid="false",name="new"} 0
fleet_workload_eviction_complete{isCompleted="true",isValid="false",name="refused"} 1
# HELP fleet_workload_placement_status_last_timestamp_seconds Unix time of the last change of the placement's first condition that is not True, or of Completed. Same name as in KubeFleet.
# TYPE fleet_workload_placement_status_last_timestamp_seconds gauge
fleet_workload_placement_status_last_timestamp_seconds{conditionType="ClusterResourcePlacementApplied",generation="0",name="refused",namespace="",reason="ApplyFailed",status="False"} 1.7e+09
fleet_workload_placement_status_last_timestamp_seconds{conditionType="ClusterResourcePlacementRolloutStarted",generation="0",name="external",namespace="",reason="RolloutControlledByExternalController",status="Unknown"} 1.7e+09
fleet_workload_placement_status_last_timestamp_seconds{conditionType="ClusterResourcePlacementScheduled",generation="0",name="new",namespace="",reason="SchedulePending",status="Unknown"} 1.7e+09
fleet_workload_placement_status_last_timestamp_seconds{conditionType="ClusterResourcePlacementScheduled",generation="0",name="unnamed",namespace="",reason="SchedulePending",status="Unknown"} 1.7e+09
fleet_workload_placement_status_last_timestamp_seconds{conditionType="Completed",generation="0",name="done",namespace="",reason="Completed",status="True"} 1.7e+09
# HELP fleet_workload_update_run_status_last_timestamp_seconds Unix time of the last change of the update run's last known condition. Same name as in KubeFleet.
# TYPE fleet_workload_update_run_status_last_timestamp_seconds gauge
fleet_workload_update_run_status_last_timestamp_seconds{condition="Initialized",name="new",namespace="",reason="",state="",status="Unknown"} 1.7e+09
fleet_workload_update_run_status_last_timestamp_seconds{condition="Progressing",name="stopped",namespace="",reason="UpdateRunStopped",state="Stop",status="False"} 1.7e+09
fleet_workload_update_run_status_last_timestamp_seconds{condition="Progressing",name="waiting",namespace="",reason="UpdateRunWaiting",state="",status="False"} 1.7e+09
fleet_workload_update_run_status_last_timestamp_seconds{condition="Succeeded",name="failed",namespace="",reason="x",state="",status="False"} 1.7e+09
# HELP fleetgate_account_token_expiration_timestamp_seconds Unix time at which the token of a member's account expires, or 0 if it has none.
# TYPE fleetgate_account_token_expiration_timestamp_seconds gauge
fleetgate_account_token_expiration_timestamp_seconds{account="cluster-gateway",member="a"} 1.7e+09
fleetgate_account_token_expiration_timestamp_seconds{account="cluster-gateway",member="b"} 0
# HELP fleetgate_account_token_lifetime_seconds Lifetime in seconds of the token of a member's account, from its last refresh, or 0 if it has none.
# TYPE fleetgate_account_token_lifetime_seconds gauge
fleetgate_account_token_lifetime_seconds{account="cluster-gateway",member="a"} 3600
fleetgate_account_token_lifetime_seconds{account="cluster-gateway",member="b"} 0
# HELP fleetgate_member_joined 1 if the member has joined and sends heartbeats, otherwise 0.
# TYPE fleetgate_member_joined gauge
fleetgate_member_joined{member="a"} 1
fleetgate_member_joined{member="b"} 1
fleetgate_member_joined{member="c"} 0
fleetgate_member_joined{member="d"} 0
fleetgate_member_joined{member="e"} 0
# HELP fleetgate_members Number of members by state: joined, unhealthy (joined, and reports itself unhealthy), silent (no heartbeat), waiting (the agent has not reported yet), leaving.
# TYPE fleetgate_members gauge
fleetgate_members{state="joined"} 1
fleetgate_members{state="leaving"} 1
fleetgate_members{state="silent"} 1
fleetgate_members{state="unhealthy"} 1
fleetgate_members{state="waiting"} 1
# HELP fleetgate_placement_waiting 1 if the placement waits only for a user: update runs roll it out, or it names no member. Such a placement is not stuck.
# TYPE fleetgate_placement_waiting gauge
fleetgate_placement_waiting{name="external",namespace=""} 1
fleetgate_placement_waiting{name="unnamed",namespace=""} 1
# HELP fleetgate_update_runs Number of update runs by state: new, running, waiting (for an approval, a time or a member), stuck, stopped, succeeded, failed.
# TYPE fleetgate_update_runs gauge
fleetgate_update_runs{state="failed"} 1
fleetgate_update_runs{state="new"} 1
fleetgate_update_runs{state="running"} 0
fleetgate_update_runs{state="stopped"} 1
fleetgate_update_runs{state="stuck"} 0
fleetgate_update_runs{state="succeeded"} 0
fleetgate_update_runs{state="waiting"} 1
# HELP fleetgate_works Number of Works by state: available, unavailable (applied, but not available), failed (not applied), pending (not reported by the member yet).
# TYPE fleetgate_works gauge
fleetgate_works{state="available"} 2
fleetgate_works{state="failed"} 1
fleetgate_works{state="pending"} 1
fleetgate_works{state="unavailable"} 1
`
	c := &collector{fleet: &Fleet{Reader: hub(t, interceptor.Funcs{}, fleet()...), Accounts: true}, leads: t.Context}
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// The alert for stuck placements excludes those that wait for people. A placement without names was
// excluded whatever else was wrong with it.
func TestCollector_PlacementWithoutNamesWaitsForPeopleOnlyIfNothingElseIsWrong(t *testing.T) {
	const generation = 2
	for what, of := range map[string]struct {
		given *metav1.Condition
		waits bool
	}{
		"it names no member":                   {&metav1.Condition{Status: unknown, Reason: placementv1beta1.ReasonSchedulePending, ObservedGeneration: generation}, true},
		"its selectors are wrong, too":         {&metav1.Condition{Status: no, Reason: placementv1beta1.ReasonInvalidResourceSelectors, ObservedGeneration: generation}, false},
		"no gateway has looked at it":          {nil, false},
		"no gateway has looked since a change": {&metav1.Condition{Status: unknown, Reason: placementv1beta1.ReasonSchedulePending, ObservedGeneration: generation - 1}, false},
		"the previous decision stays reported": {&metav1.Condition{Status: yes, Reason: "Scheduled", ObservedGeneration: generation - 1}, false},
	} {
		t.Run(what, func(t *testing.T) {
			p := placement("unnamed")
			p.Generation, p.Spec.Policy = generation, &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed}
			if of.given != nil {
				of.given.Type = p.ConditionType(isScheduled)
				p.Status.Conditions = []metav1.Condition{*of.given}
			}
			c := &collector{fleet: &Fleet{Reader: hub(t, interceptor.Funcs{}, p)}, leads: t.Context}
			if waits := testutil.CollectAndCount(c, "fleetgate_placement_waiting") > 0; waits != of.waits {
				t.Errorf("it is said to wait for people: %v, want %v", waits, of.waits)
			}
		})
	}
}

func TestCollector_DoesNotReadKindsThatAreNotServed(t *testing.T) {
	reader := hub(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*authenticationv1beta1.ManagedServiceAccountList); ok {
			t.Error("ManagedServiceAccounts are read")
		}
		return c.List(ctx, list, options...)
	}})
	if n := testutil.CollectAndCount(&collector{fleet: &Fleet{Reader: reader}, leads: t.Context}); n != statesOfAll {
		t.Errorf("%d series of an empty fleet, want one of each state", n)
	}
}

// statesOfAll is the number of states of members, Works and runs: those series exist when nothing
// else does.
const statesOfAll = 5 + 4 + 7

func TestCollector_UnreadableKindDoesNotAffectOthers(t *testing.T) {
	reader := hub(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		if _, ok := list.(*placementv1beta1.WorkList); ok {
			return errors.New("not now")
		}
		return c.List(ctx, list, options...)
	}}, fleet()...)
	c := &collector{fleet: &Fleet{Reader: reader, Accounts: true}, leads: t.Context}
	if works, members := testutil.CollectAndCount(c, "fleetgate_works"), testutil.CollectAndCount(c, "fleetgate_members"); works != 0 || members != 5 {
		t.Errorf("%d series of works and %d of members", works, members)
	}
}

func TestFleet_OnlyTheLeaderExports(t *testing.T) {
	registry := prometheus.NewRegistry()
	c := &Fleet{Reader: hub(t, interceptor.Funcs{})}
	for range 2 { // It may lead again.
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx, registry) }()
		for {
			if n, err := testutil.GatherAndCount(registry); err != nil || n == statesOfAll {
				break
			}
		}
		end()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if n, err := testutil.GatherAndCount(registry); n != 0 || err != nil {
			t.Errorf("%d series are left: %v", n, err)
		}
	}
}
