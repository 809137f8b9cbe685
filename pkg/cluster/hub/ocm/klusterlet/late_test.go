// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
)

// A busy hub takes seconds for a write: clusters became Unknown later by that time.
func TestLiveness_SlowWriteDoesNotDelayExpiry(t *testing.T) {
	known := build.Scheme(clusterv1.AddToScheme, coordinationv1.AddToScheme)
	begin := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	const period = 10 * time.Second
	for name, tc := range map[string]struct{ write, want time.Duration }{
		"a hub that answers at once":    {0, patience * period},
		"one that takes three seconds":  {3 * time.Second, patience*period - 3*time.Second},
		"one that takes until it ended": {patience*period + 1, soonest},
	} {
		now := clocktesting.NewFakePassiveClock(begin)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}, Spec: clusterv1.ManagedClusterSpec{LeaseDurationSeconds: int32(period.Seconds())}}
		cluster.Status.Conditions = []metav1.Condition{
			{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAccepted},
			{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: clusterv1.ReasonAvailable},
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "edge", Name: clusterv1.ClusterLease}}
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(begin))
		slow := func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			now.SetTime(now.Now().Add(tc.write))
			return c.SubResource(sub).Patch(ctx, object, patch, options...)
		}
		hub := fake.NewClientBuilder().WithScheme(known).WithObjects(cluster, lease).WithStatusSubresource(cluster).
			WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: slow}).Build()
		r := &LivenessReconciler{Client: hub, Leases: build.CacheOf(hub), Clock: now}
		// It was seen, so there is something to write: whether the clocks agree.
		r.remember("edge", Beat{Renewed: begin, Seen: begin})
		got, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(cluster)})
		if err != nil || got.RequeueAfter != tc.want || ptr.Deref(got.Priority, -1) != 0 {
			t.Errorf("%s: looked at again in %v with priority %v, %v; want %v, as any other", name, got.RequeueAfter, got.Priority, err, tc.want)
		}
	}
}
