// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// The API server calls mutating webhooks before it validates an object against its schema. So the
// webhook has to read quantities that the schema rejects.
func TestAClusterWithAQuantityOfABillionDigitsIsCompletedAtOnce(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clusterv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handlers := ClusterHandlers(Hub{Scheme: scheme}, clock.RealClock{})
	code, got := ask(t, handlers, pathMutateCluster, review(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",
		"metadata":{"name":"c"},"spec":{"taints":[{"key":"k","effect":"NoSelect"}]},"status":{"capacity":{"cpu":"1e-99999999"}}}`))
	if code != http.StatusOK || got == nil || !got.Response.Allowed {
		t.Fatalf("%d, %+v", code, got)
	}
	for _, want := range []string{"/spec/taints/0/timeAdded", "leaseDurationSeconds", clusterv1.ResourceCleanupFinalizer, clusterv1.GarbageFinalizer, clusterv1.ClusterSetLabel[strings.LastIndex(clusterv1.ClusterSetLabel, "/")+1:]} {
		if !strings.Contains(string(got.Response.Patch), want) {
			t.Errorf("the patch is %s, without %s", got.Response.Patch, want)
		}
	}
}

func TestTaintsAreDatedByTheHub(t *testing.T) {
	now, before := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), metav1.NewTime(time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC))
	taint := func(value string, effect clusterv1.TaintEffect, at metav1.Time) clusterv1.Taint {
		return clusterv1.Taint{Key: "k", Value: value, Effect: effect, TimeAdded: at}
	}
	const here, later = clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectNoSelectIfNew
	for name, tc := range map[string]struct {
		older []clusterv1.Taint
		newer clusterv1.Taint
		want  time.Time // zero: it is refused
	}{
		"of a new cluster":                        {nil, taint("v", here, metav1.Time{}), now},
		"of a new cluster, with a time":           {nil, taint("v", here, before), now},
		"that is new":                             {[]clusterv1.Taint{}, taint("v", here, metav1.Time{}), now},
		"that is new, with a time":                {[]clusterv1.Taint{}, taint("v", here, before), time.Time{}},
		"that stays":                              {[]clusterv1.Taint{taint("v", here, before)}, taint("v", here, before), before.Time},
		"that stays, without its time":            {[]clusterv1.Taint{taint("v", here, before)}, taint("v", here, metav1.Time{}), time.Time{}},
		"that stays, with another time":           {[]clusterv1.Taint{taint("v", here, before)}, taint("v", here, metav1.NewTime(now)), time.Time{}},
		"that has another effect":                 {[]clusterv1.Taint{taint("v", here, before)}, taint("v", later, metav1.Time{}), now},
		"that has another value":                  {[]clusterv1.Taint{taint("v", here, before)}, taint("w", here, metav1.Time{}), now},
		"that has another effect, and a time yet": {[]clusterv1.Taint{taint("v", here, before)}, taint("v", later, before), time.Time{}},
	} {
		var older *clusterv1.ManagedCluster
		if tc.older != nil {
			older = &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: tc.older}}
		}
		newer := &clusterv1.ManagedCluster{Spec: clusterv1.ManagedClusterSpec{Taints: []clusterv1.Taint{tc.newer}}}
		wrong := clustersDefaulter{clock: clocktesting.NewFakePassiveClock(now)}.dateTaints(older, newer)
		if refused := len(wrong) > 0; refused != tc.want.IsZero() || !refused && !newer.Spec.Taints[0].TimeAdded.Time.Equal(tc.want) {
			t.Errorf("a taint %s: refused %q, dated %s, want %s", name, wrong, newer.Spec.Taints[0].TimeAdded, tc.want)
		}
	}
}
