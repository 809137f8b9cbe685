// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// hostile is text that a member or a user can write.
const hostile = "<script>alert(1)</script>\"'>\u202eevil\x1b[2J&amp;"

// over is a console with objects; tables of placements and of members are answered with text.
func over(t *testing.T, table string, objects ...client.Object) http.Handler {
	t.Helper()
	return overHub(t, table, interceptor.Funcs{}, objects...)
}

// overHub is over with functions that intercept requests to the hub.
func overHub(t *testing.T, table string, functions interceptor.Funcs, objects ...client.Object) http.Handler {
	t.Helper()
	scheme, err := overview.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(table))
	}))
	t.Cleanup(server.Close)
	h := &overview.Hub{WithWatch: fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(kindsOf(scheme)).WithStatusSubresource(&placementv1beta1.ClusterApprovalRequest{}).WithObjects(objects...).WithInterceptorFuncs(functions).Build(), Config: &rest.Config{Host: server.URL}}
	handler, err := (&Console{Hub: h, Clock: clock.RealClock{}, form: "form"}).handler()
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// kindsOf knows the kinds that a hub serves.
func kindsOf(scheme *runtime.Scheme) meta.RESTMapper {
	kinds := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		kinds.Add(kind, meta.RESTScopeRoot)
	}
	return kinds
}

const noTable = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[],"rows":[]}`

func get(handler http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func joined(name string, labels map[string]string) *clusterv1beta1.MemberCluster {
	m := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	m.Status.Conditions = []metav1.Condition{
		{Type: clusterv1beta1.ConditionReadyToJoin, Status: metav1.ConditionTrue}, {Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionTrue},
	}
	m.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent}}
	m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.PropertyNodeCount: {Value: "5"}}
	return m
}

func TestPages_EscapeUntrustedText(t *testing.T) {
	member := joined("m", map[string]string{"region": "eu"})
	member.Status.Conditions[1] = metav1.Condition{Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionUnknown, Reason: "Silent", Message: hostile + strings.Repeat("x", 64<<10)}
	member.Status.Properties["evil"] = clusterv1beta1.PropertyValue{Value: hostile}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	placement.Status.Conditions = []metav1.Condition{{Type: "ClusterResourcePlacementScheduled", Status: metav1.ConditionTrue}}
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "shop"}}}
	binding.Spec.TargetCluster = "m"
	binding.Status.DriftedPlacements = []placementv1beta1.DriftedResourcePlacement{{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: hostile, Name: hostile}, ObservedDrifts: []placementv1beta1.PatchDetail{{Path: hostile, ValueInHub: hostile, ValueInMember: hostile}},
	}}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "r"}}
	run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: hostile, Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: hostile}}}}
	table := fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"},{"name":%[1]q}],"rows":[{"cells":["shop",%[1]q],"object":{"metadata":{"name":"shop"}}}]}`, "<script>alert(1)</script>")
	handler := over(t, table, member, placement, binding, run)
	for _, path := range []string{"/", "/?by=region", "/member?name=m", "/placements", "/placement?name=shop", "/runs", "/runs/confirm?what=stop&run=r", "/search", "/search?kind=pods&namespace=%3Cscript%3E", "/problems", "/member?name=%3Cscript%3E", "/pod?member=m&namespace=default&name=%3Cscript%3E"} {
		w := get(handler, path)
		body := w.Body.String()
		if w.Code != http.StatusOK && !strings.Contains(path, "%3C") || strings.Contains(body, "<script>") || strings.ContainsAny(body, "\u202e\x1b") || len(body) > 64<<10 {
			t.Errorf("%s: %d, %d bytes:\n%s", path, w.Code, len(body), body[:min(len(body), 3000)])
		}
		if !strings.Contains(body, `<html lang="en">`) || !strings.Contains(body, "</html>") || !strings.Contains(body, "<h1>") {
			t.Errorf("%s is incomplete:\n%s", path, body[:min(len(body), 3000)])
		}
	}
	if body := get(handler, "/placement?name=shop").Body.String(); !strings.Contains(body, "&lt;script&gt;alert(1)") {
		t.Errorf("drift is missing:\n%s", body)
	}
}

func TestProblems_ListsMembersWithOwnProblems(t *testing.T) {
	sick, lent := joined("sick", nil), joined("lent", nil)
	sick.Status.AgentStatus[0].Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionHealthy, Status: metav1.ConditionFalse, Reason: "NotReady", Message: "etcd is slow"}}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	for _, member := range []string{"sick", "lent"} {
		placement.Status.PlacementStatuses = append(placement.Status.PlacementStatuses, placementv1beta1.PerClusterPlacementStatus{
			ClusterName: member, Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionApplied, Status: metav1.ConditionFalse, Message: "exceeded quota"}},
		})
	}
	body := get(over(t, tableOf("shop"), sick, lent, placement), "/problems").Body.String()
	for text, want := range map[string]bool{"Member sick": true, "etcd is slow": true, "Member lent": false, "Placement shop": true} {
		if strings.Contains(body, text) != want {
			t.Errorf("%q is on the page: %v\n%s", text, !want, body)
		}
	}
}

// tableOf has the hub's columns of a placement that is scheduled and not known to be available.
func tableOf(name string) string {
	return fmt.Sprintf(`{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Scheduled"},{"name":"Available"}],"rows":[{"cells":["True",null],"object":{"metadata":{"name":%q}}}]}`, name)
}

func TestPlacements_ReadyWithoutConditionAvailable(t *testing.T) {
	scheduled := metav1.Condition{Type: "ClusterResourcePlacementScheduled", Status: metav1.ConditionTrue}
	compared := metav1.Condition{Type: "ClusterResourcePlacementDiffReported", Status: metav1.ConditionTrue}
	reports := &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ReportDiff}
	members := []placementv1beta1.PerClusterPlacementStatus{{ClusterName: "m", Conditions: []metav1.Condition{{Type: placementv1beta1.ConditionDiffReported, Status: metav1.ConditionTrue}}}}
	for name, test := range map[string]struct {
		strategy *placementv1beta1.ApplyStrategy
		status   placementv1beta1.PlacementStatus
		ready    bool
	}{
		"ReportDiff, compared":                          {reports, placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{scheduled, compared}, PlacementStatuses: members}, true},
		"ReportDiff, not compared yet":                  {reports, placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{scheduled}, PlacementStatuses: members}, false},
		"PickAll without members":                       {nil, placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{scheduled}}, true},
		"applied, not available":                        {nil, placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{scheduled}, PlacementStatuses: members}, false},
		"not decided yet":                               {nil, placementv1beta1.PlacementStatus{}, false},
		"scheduled and compared, but should be applied": {nil, placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{scheduled, compared}, PlacementStatuses: members}, false},
	} {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Status: test.status}
			placement.Spec.Strategy.ApplyStrategy = test.strategy
			handler := over(t, tableOf("shop"), placement)
			if wrong := get(handler, "/problems").Body.String(); strings.Contains(wrong, "Placement shop") == test.ready {
				t.Errorf("problems page:\n%s", wrong)
			}
			if all := get(handler, "/placements").Body.String(); strings.Contains(all, "not ready") == test.ready {
				t.Errorf("placements page:\n%s", all)
			}
		})
	}
}

func TestIsVisible_IgnoresHeartbeats(t *testing.T) {
	shown := map[string]*clusterv1beta1.MemberCluster{}
	news := func(kind watch.EventType, change func(*clusterv1beta1.MemberCluster)) bool {
		m := joined("m", nil)
		change(m)
		return isVisible(shown, watch.Event{Type: kind, Object: m})
	}
	if !news(watch.Added, func(*clusterv1beta1.MemberCluster) {}) {
		t.Error("new member is not visible")
	}
	if news(watch.Modified, func(m *clusterv1beta1.MemberCluster) {
		m.ResourceVersion = "2"
		m.Status.AgentStatus[0].LastReceivedHeartbeat = metav1.Now()
		m.Status.ResourceUsage.ObservationTime = metav1.Now()
		m.Status.Properties[clusterv1beta1.PropertyNodeCount] = clusterv1beta1.PropertyValue{Value: "5", ObservationTime: metav1.Now()}
	}) {
		t.Error("heartbeat is visible")
	}
	if !news(watch.Modified, func(m *clusterv1beta1.MemberCluster) { m.Labels = map[string]string{"region": "eu"} }) {
		t.Error("label is not visible")
	}
	if !news(watch.Modified, func(m *clusterv1beta1.MemberCluster) { m.Status.Conditions[1].Status = metav1.ConditionUnknown }) {
		t.Error("disconnected member is not visible")
	}
	if !news(watch.Deleted, func(*clusterv1beta1.MemberCluster) {}) || len(shown) != 0 {
		t.Error("deleted member is not visible, or is still stored")
	}
	if !isVisible(shown, watch.Event{Type: watch.Modified, Object: &metav1.PartialObjectMetadata{}}) {
		t.Error("changed placement is not visible")
	}
}

func TestFleet_ShowsTilePerMember(t *testing.T) {
	handler := over(t, noTable, joined("a", map[string]string{"region": "eu"}), joined("b", map[string]string{"region": "us"}), joined("c", nil))
	body := get(handler, "/?by=region").Body.String()
	for _, want := range []string{">eu</text>", ">us</text>", ">no region</text>", `<a href="/member?name=a" aria-label="a: healthy">`, `<rect class="healthy"`, "3 members, 0 not ready"} {
		if !strings.Contains(body, want) {
			t.Errorf("missing %q in\n%s", want, body)
		}
	}
}

func TestDrawn_FitsThousandMembers(t *testing.T) {
	o := &overview.Overview{}
	for i := range 1000 {
		o.Members = append(o.Members, *joined(fmt.Sprintf("member-%d", i), map[string]string{"region": fmt.Sprint(i % 4)}))
	}
	p := drawn(o, "region")
	seen := map[[2]int]bool{}
	for _, b := range p.Groups {
		for _, tile := range b.Tiles {
			at := [2]int{tile.X / place, tile.Y / place}
			if tile.X < 0 || tile.X+tile.Side > p.Width || tile.Y+tile.Side > p.Height || seen[[2]int{tile.X, tile.Y}] {
				t.Errorf("%+v at %v is outside of the picture, or overlaps another", tile, at)
			}
			seen[[2]int{tile.X, tile.Y}] = true
		}
	}
	if len(p.Groups) != 4 || len(seen) != 1000 || p.Height > 900 {
		t.Errorf("%d groups, %d tiles, %d high", len(p.Groups), len(seen), p.Height)
	}
}

func TestEvents_NotifyPages(t *testing.T) {
	c := &Console{live: newSignals()}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(c.events))
	defer server.Close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	buffer := make([]byte, 100)
	n, err := response.Body.Read(buffer)
	if err != nil || string(buffer[:n]) != ": hello\n\n" {
		t.Fatalf("got %q, %v", buffer[:n], err)
	}
	c.live.notify()
	c.live.notify() // Both result in one notification.
	n, err = response.Body.Read(buffer)
	if err != nil || string(buffer[:n]) != "data: changed\n\n" {
		t.Errorf("got %q, %v", buffer[:n], err)
	}
}
