// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func TestIsDue(t *testing.T) {
	start := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	known := func() facts {
		u := newUsage()
		u.addNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Capacity: resources("4", "8Gi"), Allocatable: resources("4", "8Gi")},
		})
		return facts{
			health: health{ok: true}, version: "v1.36.3", server: "https://member", serverCA: []byte("ca"),
			claims: map[string]string{"platform": "bare"}, usage: u,
		}
	}
	tests := map[string]struct {
		after      time.Duration
		generation int64
		change     func(*facts)
		want       bool
	}{
		"nothing new":                           {time.Minute, 1, func(*facts) {}, false},
		"nothing new, a while":                  {reportInterval - time.Second, 1, func(*facts) {}, false},
		"nothing new for too long":              {reportInterval, 1, func(*facts) {}, true},
		"a new generation":                      {time.Second, 2, func(*facts) {}, true},
		"unhealthy":                             {time.Minute, 1, func(f *facts) { f.health = health{message: "no"} }, true},
		"another version":                       {time.Minute, 1, func(f *facts) { f.version = "v1.37.0" }, true},
		"another CA":                            {time.Minute, 1, func(f *facts) { f.serverCA = []byte("new") }, true},
		"a claim changed":                       {time.Minute, 1, func(f *facts) { f.claims = map[string]string{"platform": "cloud"} }, true},
		"a claim was removed":                   {time.Minute, 1, func(f *facts) { f.claims = map[string]string{} }, true},
		"more requested resources":              {time.Minute, 1, func(f *facts) { f.usage.requested[corev1.ResourceCPU] = resource.MustParse("1") }, true},
		"the same quantity in another notation": {time.Minute, 1, func(f *facts) { f.usage.allocatable[corev1.ResourceCPU] = resource.MustParse("4000m") }, false},
		"unknown facts":                         {time.Minute, 1, func(f *facts) { *f = facts{health: health{ok: true}} }, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			imc := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			first := joinedReport(imc, known(), start)
			if !isDue(&imc.Status, &first) {
				t.Fatal("the first report is not due")
			}
			imc.Status, imc.Generation = first, tc.generation
			f := known()
			tc.change(&f)
			second := joinedReport(imc, f, start.Add(tc.after))
			if got := isDue(&imc.Status, &second); got != tc.want {
				t.Errorf("due: got %v, want %v\n%s", got, tc.want, cmp.Diff(first, second))
			}
		})
	}
}

func TestCollectClaims_LimitsNumberAndSize(t *testing.T) {
	item := func(name, value string, labels map[string]string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"value": value}}
	}
	list := func(items ...map[string]any) []byte {
		encoded, err := json.Marshal(map[string]any{"items": items})
		if err != nil {
			t.Fatal(err)
		}
		return encoded
	}
	claims := map[string]string{}
	if err := addClaims(claims, list(
		item("platform", "bare", nil), item("secret", "x", map[string]string{spokeOnlyLabel: ""}),
		item("huge", strings.Repeat("x", maxClaimValueLength+1), nil), item("empty", "", nil),
	)); err != nil {
		t.Fatal(err)
	}
	if err := addClaims(claims, list(item("platform", "cloud", nil), item("id", "1", nil))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"platform": "cloud", "id": "1"}, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	var many []map[string]any
	for i := range 2 * maxClaims {
		many = append(many, item(fmt.Sprintf("claim-%03d", i), "x", nil))
	}
	if err := addClaims(claims, list(append(many, item("platform.open-cluster-management.io", "AWS", nil))...)); err != nil {
		t.Fatal(err)
	}
	claims = bounded(claims)
	_, last := claims["claim-098"]
	if _, beyond := claims["claim-099"]; len(claims) != maxClaims || claims["platform.open-cluster-management.io"] != "AWS" || !last || beyond {
		t.Errorf("%d claims: %v", len(claims), slices.Sorted(maps.Keys(claims)))
	}
	if err := addClaims(claims, []byte("no JSON")); err == nil {
		t.Error("invalid JSON was accepted")
	}
}

func TestLeaseSpec(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	spec, err := json.Marshal(leaseSpec("edge", 30, now))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"holderIdentity":"edge","leaseDurationSeconds":30,"renewTime":"2026-08-01T12:00:00.000000Z"}`
	if string(spec) != want {
		t.Errorf("got %s, want %s", spec, want)
	}
}

func TestUsage_CountsReadyNodesAndNamesOne(t *testing.T) {
	u := newUsage()
	for name, ready := range map[string]corev1.ConditionStatus{"b": corev1.ConditionTrue, "a": corev1.ConditionFalse, "c": corev1.ConditionTrue} {
		u.addNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}},
		})
	}
	if u.nodes != 3 || u.readyNodes != 2 || u.sampleNode != "a" {
		t.Errorf("%d nodes, %d ready, for example %q", u.nodes, u.readyNodes, u.sampleNode)
	}
}
