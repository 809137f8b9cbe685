// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver"
)

const resource = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways"

func decode[T any](t *testing.T, res *http.Response) T {
	t.Helper()
	wantCode(t, res, http.StatusOK)
	var v T
	if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func threeMembers(t *testing.T, options ...option) *gateway {
	t.Helper()
	g := newGateway(t, map[string]*member{"a": newMember(t, http.HandlerFunc(echo))}, options...)
	g.inform.handler.OnAdd(memberCluster("b", 20, "team=x"), true)
	g.inform.handler.OnAdd(memberCluster("c", 21, "team=y"), true)
	return g
}

func TestClusterGateways_ListBySelector(t *testing.T) {
	g := threeMembers(t)
	for query, want := range map[string][]string{
		"":                               {"a", "b", "c"},
		"?labelSelector=team%3Dx":        {"b"},
		"?labelSelector=team":            {"b", "c"},
		"?fieldSelector=metadata.name=c": {"c"},
	} {
		list := decode[gatewayv1alpha1.ClusterGatewayList](t, g.do(http.MethodGet, resource+query, "jane", nil))
		var got []string
		for _, item := range list.Items {
			got = append(got, item.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
		if list.Kind != "ClusterGatewayList" || list.ResourceVersion != "21" {
			t.Errorf("got kind %q, version %q", list.Kind, list.ResourceVersion)
		}
	}
	wantCode(t, g.do(http.MethodGet, resource+"?fieldSelector=spec.provider=x", "jane", nil), http.StatusBadRequest)
}

func TestClusterGateways_ContainNoSecret(t *testing.T) {
	g := threeMembers(t)
	res := g.do(http.MethodGet, resource+"/a", "jane", nil)
	wantCode(t, res, http.StatusOK)
	got := text(t, res)
	if strings.Contains(got, "token-1") || !strings.Contains(got, `"type":"ServiceAccountToken"`) {
		t.Errorf("got %s", got)
	}
	wantCode(t, g.do(http.MethodGet, resource+"/none", "jane", nil), http.StatusNotFound)
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
		wantCode(t, g.do(method, resource+"/a", "jane", strings.NewReader("{}")), http.StatusMethodNotAllowed)
	}
}

func TestClusterGateways_TableHasUpstreamColumns(t *testing.T) {
	g := threeMembers(t)
	table := decode[metav1.Table](t, g.do(http.MethodGet, resource, "jane", nil,
		header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")))
	var columns []string
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, c.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Provider", "Credential-Type", "Endpoint-Type", "Healthy"}, columns); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"a", "", "ServiceAccountToken", "ClusterProxy", "false"}, table.Rows[0].Cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"b", "", "", "ClusterProxy", "false"}, table.Rows[1].Cells); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestClusterGateways_WatchContinuesList(t *testing.T) {
	g := threeMembers(t)
	for query, first := range map[string]string{
		"?watch=true&resourceVersion=21": "ADDED d",
		"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": "ADDED a",
	} {
		t.Run(first, func(t *testing.T) {
			res := g.do(http.MethodGet, resource+query, "jane", nil)
			wantCode(t, res, http.StatusOK)
			defer func() { _ = res.Body.Close() }()
			g.inform.handler.OnAdd(memberCluster("d", 22), false)
			line, err := bufio.NewReader(res.Body).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			var event struct {
				Type   string
				Object gatewayv1alpha1.ClusterGateway
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatal(err)
			}
			if got := event.Type + " " + event.Object.Name; got != first {
				t.Errorf("got %s, want %s", got, first)
			}
		})
	}
}

func TestHealth_ChecksTheMember(t *testing.T) {
	g := threeMembers(t)
	m := g.members["a"]
	health := func() gatewayv1alpha1.ClusterGatewayStatus {
		return decode[gatewayv1alpha1.ClusterGateway](t, g.do(http.MethodGet, resource+"/a/health", "jane", nil)).Status
	}
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Impersonate-User") != "" {
			t.Errorf("the member got %s as %q", r.URL.Path, r.Header.Get("Impersonate-User"))
		}
	})
	if got := health(); !got.Healthy {
		t.Errorf("got %+v", got)
	}
	m.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	if got := health(); got.Healthy || got.HealthyReason != gatewayv1alpha1.HealthyReasonUnhealthy {
		t.Errorf("got %+v", got)
	}
	m.disconnect()
	if got := health(); got.Healthy || got.HealthyReason == "" {
		t.Errorf("got %+v", got)
	}
	if got := health(); got.HealthyReason != gatewayv1alpha1.HealthyReasonNotConnected {
		t.Errorf("got %+v", got)
	}
	m.setToken("")
	if got := health(); got.HealthyReason != gatewayv1alpha1.HealthyReasonNoCredential {
		t.Errorf("got %+v", got)
	}
}

func TestDiscovery_ListsSubresources(t *testing.T) {
	g := threeMembers(t)
	list := decode[metav1.APIResourceList](t, g.do(http.MethodGet, "/apis/cluster.core.oam.dev/v1alpha1", "jane", nil))
	got := map[string]string{}
	for _, r := range list.APIResources {
		got[r.Name] = strings.Join(r.Verbs, ",")
	}
	want := map[string]string{
		"clustergateways":        "get,list,watch",
		"clustergateways/health": "get",
		"clustergateways/proxy":  "create,delete,get,patch,update",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	tunnels := decode[metav1.APIResourceList](t, g.do(http.MethodGet, "/apis/tunnel.fleetgate.io/v1alpha1", "jane", nil))
	if len(tunnels.APIResources) != 2 {
		t.Errorf("got %+v", tunnels.APIResources)
	}
}

func TestOpenAPI_IsServed(t *testing.T) {
	g := threeMembers(t)
	for path, want := range map[string]string{
		"/openapi/v2": "io.fleetgate",
		"/openapi/v3/apis/cluster.core.oam.dev/v1alpha1": "clustergateways/{name}/proxy/{path}",
		"/openapi/v3/apis/tunnel.fleetgate.io/v1alpha1":  "tunnels/{name}/proxy",
	} {
		res := g.do(http.MethodGet, path, "jane", nil)
		wantCode(t, res, http.StatusOK)
		if got := text(t, res); !strings.Contains(strings.ToLower(got), want) && !strings.Contains(got, "ClusterGateway") {
			t.Errorf("%s says nothing of %s", path, want)
		}
	}
}

func TestServer_RefusesAnonymousCallers(t *testing.T) {
	g := threeMembers(t)
	for _, path := range []string{resource, resource + "/a/proxy/healthz", "/metrics", "/apis"} {
		wantCode(t, g.do(http.MethodGet, path, "", nil), http.StatusUnauthorized)
	}
}

func TestMetrics_LabelsAreBounded(t *testing.T) {
	registry := prometheus.NewRegistry()
	g := threeMembers(t, func(c *apiserver.Config) { c.Metrics = registry })
	for _, path := range []string{"a/proxy/api/v1/pods", "a/proxy/api/v1/made-up-1", "a/proxy/made-up/2", "unknown-member/proxy/api"} {
		_ = text(t, g.do(http.MethodGet, prefix+path, "jane", nil))
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "fleetgate_proxy_requests_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			got[strings.Join(labels, " ")] = metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{"200 a list": 2, "200 a nonresource": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestComplete_NamesAllMissingFields(t *testing.T) {
	_, err := apiserver.Config{}.Complete()
	if err == nil {
		t.Fatal("got no error")
	}
	for _, part := range []string{"hub", "certificate", "inventory", "credentials", "dialer", "liveness"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not named in: %v", part, err)
		}
	}
}

func TestTunnel_OnlyForTheAgentOfItsMember(t *testing.T) {
	g := threeMembers(t)
	const agent = "system:serviceaccount:fleet-member-a:agent"
	g.agents = map[string][]string{agent: {"a", "deleted"}}
	g.tunnel = func(member string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, brw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			line, _ := brw.ReadString('\n')
			_, _ = io.WriteString(conn, member+" "+line)
		})
	}
	open := func(method, path, user string) string {
		return method + " /apis/tunnel.fleetgate.io/v1alpha1/" + path + " HTTP/1.1\r\nHost: h\r\nX-Remote-User: " + user +
			"\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
	}
	for _, path := range []string{"namespaces/fleet-member-a/tunnels/a/proxy", "tunnels/a/proxy"} {
		conn, reader, res := g.raw(open("POST", path, agent))
		wantCode(t, res, http.StatusSwitchingProtocols)
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := reader.ReadString('\n'); err != nil || line != "a hello\n" {
			t.Errorf("%s: got %q, %v", path, line, err)
		}
	}
	for request, want := range map[string]int{
		open("POST", "tunnels/b/proxy", agent):              http.StatusForbidden,
		open("POST", "tunnels/a/proxy", "jane"):             http.StatusForbidden,
		open("POST", "tunnels/deleted/proxy", agent):        http.StatusForbidden,
		open("GET", "tunnels/a/proxy", agent):               http.StatusMethodNotAllowed,
		open("PUT", "tunnels/a/proxy", agent):               http.StatusMethodNotAllowed,
		open("POST", "namespaces/x/tunnels/a/proxy", agent): http.StatusBadRequest,
		// The hub has authorized the path. Another member's namespace is no permission for this
		// member's tunnel.
		open("POST", "namespaces/fleet-member-b/tunnels/a/proxy", agent):  http.StatusBadRequest,
		open("POST", "namespaces/fleet-member-b/tunnels/b/proxy", agent):  http.StatusForbidden,
		open("POST", "namespaces/fleet-member-a/tunnels/a/proxy", "jane"): http.StatusForbidden,
		open("GET", "namespaces/fleet-member-a/tunnels/a/proxy", agent):   http.StatusMethodNotAllowed,
		open("POST", "tunnels/a/proxy/more", agent):                       http.StatusBadRequest,
	} {
		_, _, res := g.raw(request)
		if res.StatusCode != want {
			t.Errorf("%q: got %d, want %d", strings.SplitN(request, "\r\n", 2)[0], res.StatusCode, want)
		}
	}
}

// Without a version and without bookmarks in the request, a watch got a bookmark, on which the
// server's handler panicked.
func TestClusterGateways_WatchOfOldClientDoesNotPanic(t *testing.T) {
	g := threeMembers(t)
	res := g.do(http.MethodGet, "/apis/cluster.core.oam.dev/v1alpha1/clustergateways?watch=true&timeoutSeconds=1", "jane", nil)
	wantCode(t, res, http.StatusOK)
	told := text(t, res)
	if strings.Count(told, `"ADDED"`) != 3 || strings.Contains(told, "BOOKMARK") {
		t.Errorf("log:\n%s", told)
	}
}
