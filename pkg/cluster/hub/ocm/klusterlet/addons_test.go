// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
)

// addOnThat is an add-on of cluster edge, with a condition Available if it has a status.
func addOnThat(name, available string) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("edge", name)}
	if available != "" {
		at := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		addOn.Status.Conditions = []metav1.Condition{
			{Type: "Registered", Status: metav1.ConditionTrue, Reason: "Of", Message: "others", LastTransitionTime: at},
			{Type: "Available", Status: metav1.ConditionStatus(available), Reason: "Said", Message: "so", LastTransitionTime: at},
		}
	}
	return addOn
}

func TestLabelsWith_FollowAddOns(t *testing.T) {
	going := addOnThat("going", "True")
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	before := map[string]string{"of": "people", "feature.open-cluster-management.io/addon-gone": "available", "feature.open-cluster-management.io/addon-a": "unreachable"}
	got := labelsWith(before, []addonv1alpha1.ManagedClusterAddOn{
		*addOnThat("a", "True"), *addOnThat("b", "False"), *addOnThat("c", "Unknown"), *addOnThat("d", ""), *going, *addOnThat(strings.Repeat("long", 20), "True"),
	})
	want := map[string]string{
		"of": "people",
		"feature.open-cluster-management.io/addon-a": "available",
		"feature.open-cluster-management.io/addon-b": "unhealthy",
		"feature.open-cluster-management.io/addon-c": "unreachable",
		"feature.open-cluster-management.io/addon-d": "unreachable",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if before["feature.open-cluster-management.io/addon-gone"] == "" {
		t.Error("the original labels were changed")
	}
	if got := labelsWith(nil, nil); got != nil {
		t.Errorf("without labels and add-ons there are %v", got)
	}
}

func TestAddOns_UnknownWithoutHeartbeatsOfTheirCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		available metav1.ConditionStatus
		deleted   bool
		// reason is the add-on's reason afterwards, label the label of its cluster.
		reason, label string
		writes        int
	}{
		"cluster without heartbeat":        {metav1.ConditionUnknown, false, "ManagedClusterLeaseUpdateStopped", "unreachable", 2},
		"unhealthy API server":             {metav1.ConditionFalse, false, "Said", "available", 1},
		"healthy":                          {metav1.ConditionTrue, false, "Said", "available", 1},
		"it has never been heard of":       {"", false, "Said", "", 0},
		"it is about to go, and not heard": {metav1.ConditionUnknown, true, "Said", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge", Finalizers: []string{"example.com/held"}}}
			if tc.available != "" {
				cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: tc.available, Reason: clusterv1.ReasonLeaseUpdateStopped, Message: "m"}}
			}
			if tc.deleted {
				cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			addOn, writes := addOnThat("a", "True"), 0
			hub := fake.NewClientBuilder().WithScheme(build.Scheme(clusterv1.AddToScheme, addonv1alpha1.AddToScheme)).WithObjects(cluster, addOn).WithStatusSubresource(cluster, addOn).
				WithInterceptorFuncs(interceptor.Funcs{
					Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
						writes++
						return c.Patch(ctx, object, patch, options...)
					},
					SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
						writes++
						return c.SubResource(sub).Patch(ctx, object, patch, options...)
					},
				}).Build()
			r := &AddOnReconciler{Client: hub, AddOns: hub}
			for range 2 { // The second one has nothing to do.
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "edge"}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "edge", Name: "a"}, addOn); err != nil {
				t.Fatal(err)
			}
			if err := hub.Get(t.Context(), client.ObjectKey{Name: "edge"}, cluster); err != nil {
				t.Fatal(err)
			}
			conditions := addOn.Status.Conditions
			if len(conditions) != 2 || conditions[0].Reason != "Of" || conditions[1].Reason != tc.reason {
				t.Errorf("the add-on's conditions are %+v", conditions)
			}
			if label := cluster.Labels["feature.open-cluster-management.io/addon-a"]; label != tc.label || writes != tc.writes {
				t.Errorf("the cluster says %q, want %q; %d writes, want %d", label, tc.label, writes, tc.writes)
			}
		})
	}
}
