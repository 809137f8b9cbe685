// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/build"
)

func TestReportDeleted_NamesMembersThatStillHaveThePlacement(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	member := func(name string, change func(*clusterv1beta1.MemberCluster)) *clusterv1beta1.MemberCluster {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if change != nil {
			change(m)
		}
		return m
	}
	silent := func(m *clusterv1beta1.MemberCluster) {
		m.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionUnknown}}
		m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(now.Add(-time.Hour))}}
	}
	work := func(name, member, binding, message string) *placementv1beta1.Work {
		w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.MemberNamespace(member), Name: name,
			Labels: map[string]string{placementv1beta1.ParentBindingLabel: binding}}}
		w.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionRemoved, Status: metav1.ConditionFalse, Message: message}}
		return w
	}
	const lost = "members still have the placement, which they lost: "
	for name, tc := range map[string]struct {
		members []client.Object
		age     time.Duration
		want    string
		again   bool
	}{
		"a moment ago":        {[]client.Object{member("m-0", silent)}, time.Second, "", true},
		"without heartbeat":   {[]client.Object{member("m-0", silent)}, time.Hour, "1 " + lost + `"m-0" has had no heartbeat since 2026-01-01T11:00:00Z, and removes it when it reconnects`, true},
		"waiting for objects": {[]client.Object{member("m-0", nil), work("w", "m-0", "b-0", "ConfigMap shop/a waits")}, time.Hour, "1 " + lost + `"m-0": ConfigMap shop/a waits`, true},
		"slow":                {[]client.Object{member("m-0", nil), work("w", "m-0", "other", "ConfigMap shop/a waits")}, time.Hour, "1 " + lost + `"m-0" has not removed it yet`, true},
		"paused": {[]client.Object{member("m-0", func(m *clusterv1beta1.MemberCluster) {
			silent(m)
			m.Annotations = map[string]string{placementv1beta1.PausedAnnotation: "true"}
		})}, time.Hour, "1 " + lost + `"m-0" is paused: take annotation fleetgate.io/paused off it`, true},
		"no longer a member": {nil, time.Hour, "", false},
		"leaving": {[]client.Object{member("m-0", func(m *clusterv1beta1.MemberCluster) {
			m.DeletionTimestamp, m.Finalizers = &metav1.Time{Time: now}, []string{"example.com/leave"}
		})}, time.Hour, "", false},
		"many": {[]client.Object{member("m-0", nil), member("m-1", nil), member("m-2", nil), member("m-3", nil), member("m-4", nil), member("m-5", nil), member("m-6", nil)}, time.Hour,
			"7 " + lost + `"m-0" has not removed it yet; "m-1" has not removed it yet; "m-2" has not removed it yet; "m-3" has not removed it yet; "m-4" has not removed it yet; 2 more members`, true},
	} {
		t.Run(name, func(t *testing.T) {
			placement := placementOf(func(p *placementv1beta1.ClusterResourcePlacement) {
				p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now.Add(-tc.age)}, []string{"example.com/wait"}
			})
			objects := append(tc.members, placement)
			for i := range max(1, len(tc.members)) {
				b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("b-%d", i), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "p"},
					DeletionTimestamp: &metav1.Time{Time: now.Add(-tc.age)}, Finalizers: []string{placementv1beta1.WorkCleanupFinalizer}}}
				b.Spec.TargetCluster = fmt.Sprintf("m-%d", i)
				objects = append(objects, b)
			}
			hub := fake.NewClientBuilder().WithScheme(build.Scheme(placementv1beta1.AddToScheme, clusterv1beta1.AddToScheme)).WithObjects(objects...).WithStatusSubresource(placement).
				WithIndex(&placementv1beta1.ClusterResourceBinding{}, "placement", func(o client.Object) []string {
					return []string{o.GetLabels()[placementv1beta1.ParentPlacementLabel]}
				}).Build()
			r := &Reconciler{Client: hub, Clock: testingclock.NewFakePassiveClock(now)}
			for range 2 { // The condition stays the same.
				if err := hub.Get(t.Context(), client.ObjectKey{Name: "p"}, placement); err != nil {
					t.Fatal(err)
				}
				result, err := r.reportDeleted(t.Context(), placement)
				if err != nil || (result.RequeueAfter > 0) != tc.again {
					t.Errorf("again after %s, error %v", result.RequeueAfter, err)
				}
				got := ""
				if c := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionRemovalPending); c != nil {
					got = c.Message
				}
				if got != tc.want {
					t.Errorf("condition %q, want %q", got, tc.want)
				}
			}
		})
	}
}

func TestCompute_ReportsMembersThatStillHaveThePlacement(t *testing.T) {
	o := &Observed{Placement: placementOf(nil), Policy: decided("member-2"), Departures: departures{members: []string{"member-1"}, reasons: []string{"why"}}}
	status := Compute(o)
	if c := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionRemovalPending); c == nil || c.Reason != placementv1beta1.ReasonMembersNotCleared {
		t.Fatalf("condition %v", c)
	}
	*o.Placement.GetStatus(), o.Departures = *status, departures{}
	if c := meta.FindStatusCondition(Compute(o).Conditions, placementv1beta1.ConditionRemovalPending); c != nil {
		t.Errorf("condition after the members removed it: %v", c)
	}
}
