// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
)

const viewPrefix = "/apis/cluster.core.oam.dev/v1alpha1/fleetviews/"

// pods serves a list of pods, and each of them by its name.
func pods(names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		const path = "/api/v1/namespaces/shop/pods"
		switch name, one := strings.CutPrefix(r.URL.Path, path+"/"); {
		case r.URL.Path == path:
			var items []string
			from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
			rest, more := names[min(from, len(names)):], ""
			if limit, _ := strconv.Atoi(r.URL.Query().Get("limit")); limit > 0 && limit < len(rest) {
				rest, more = rest[:limit], strconv.Itoa(from+limit)
			}
			for _, name := range rest {
				items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"shop"}}`, name))
			}
			_, _ = fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3","continue":%q},"items":[%s]}`, more, strings.Join(items, ","))
		case one:
			for _, n := range names {
				if n == name {
					_, _ = fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"shop"}}`, name)
					return
				}
			}
			refuseWith(w, http.StatusNotFound, fmt.Sprintf("pods %q not found", name))
		default:
			refuseWith(w, http.StatusNotFound, "the server could not find the requested resource")
		}
	}
}

func refuseWith(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Message: message})
}

func refusing(w http.ResponseWriter, _ *http.Request) {
	refuseWith(w, http.StatusForbidden, `pods is forbidden: User "u" cannot list resource "pods"`)
}

// silent sends nothing until its caller has disconnected.
func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// rows are the items of a response, as member/name.
func rows(t *testing.T, res *http.Response) []string {
	t.Helper()
	wantCode(t, res, http.StatusOK)
	var list metav1.PartialObjectMetadataList
	content, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(content, &list); err != nil {
		t.Fatalf("%v: %s", err, content)
	}
	all := []string{}
	for _, item := range list.Items {
		all = append(all, item.Labels[viewv1alpha1.LabelMember]+"/"+item.Name)
	}
	return all
}

func withViews(views ...*viewv1alpha1.FleetView) option {
	return func(c *apiserver.Config) {
		c.Views = fleetview.ViewsFunc(func(ctx context.Context, name string) (*viewv1alpha1.FleetView, error) {
			for _, v := range views {
				if v.Name == name {
					return v, nil
				}
			}
			return fleetview.NoViews(ctx, name)
		})
	}
}

func TestFleetview_MergesMembers(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x", "y")), "b": newMember(t, pods("x")), "c": newMember(t, http.HandlerFunc(refusing)), "d": newMember(t, http.NotFoundHandler())}
	g := newGateway(t, members)
	res := g.do(http.MethodGet, viewPrefix+"all/proxy/api/v1/namespaces/shop/pods", "u", nil)
	if diff := cmp.Diff([]string{"a/x", "a/y", "b/x"}, rows(t, res)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`299 - "1 of 4 members do not let you list pods in namespace shop: c"`}, res.Header.Values("Warning")); diff != "" {
		t.Error(diff)
	}
	if got := rows(t, g.do(http.MethodGet, "/fleets/all/api/v1/namespaces/shop/pods", "u", nil)); len(got) != 3 {
		t.Errorf("got %v at the endpoint", got)
	}
}

func TestFleetview_NamesUnresponsiveMember(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, http.HandlerFunc(silent)), "c": newMember(t, pods("y"))}
	members["c"].disconnect()
	g := newGateway(t, members)
	path := viewPrefix + "all/proxy/api/v1/namespaces/shop/pods?memberTimeoutSeconds=1"
	res := g.do(http.MethodGet, path, "u", nil)
	if diff := cmp.Diff([]string{"a/x"}, rows(t, res)); diff != "" {
		t.Error(diff)
	}
	want := []string{
		`299 - "1 of 3 members did not answer within 1s: b"`,
		`299 - "1 of 3 members could not answer (503, member \"c\" is not connected: its agent has no tunnel to this hub): c"`,
	}
	if diff := cmp.Diff(want, res.Header.Values("Warning")); diff != "" {
		t.Error(diff)
	}
	members["a"].serve(silent)
	wantCode(t, g.do(http.MethodGet, path, "u", nil), http.StatusServiceUnavailable)
}

// A member that answers with an error is not reported as silent.
func TestFleetview_OverloadedMemberIsNotReportedLate(t *testing.T) {
	busy := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuseWith(w, http.StatusTooManyRequests, "too many requests")
	})
	g := newGateway(t, map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, busy)})
	want := []string{`299 - "1 of 2 members could not answer (429, too many requests): b"`}
	for _, query := range []string{"", "?limit=5"} {
		res := g.do(http.MethodGet, podsOfAll+query, "u", nil)
		if diff := cmp.Diff(want, res.Header.Values("Warning")); diff != "" {
			t.Errorf("%s: %s", query, diff)
		}
	}
}

func TestFleetview_HidesForbiddenMembers(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, http.HandlerFunc(refusing)), "c": newMember(t, pods("z"))}
	g := newGateway(t, members)
	g.allowOnly(func(a authorizer.Attributes) bool {
		return a.GetResource() == "fleetviews" || a.GetName() == "a"
	})
	res := g.do(http.MethodGet, viewPrefix+"all/proxy/api/v1/namespaces/shop/pods", "u", nil)
	if diff := cmp.Diff([]string{"a/x"}, rows(t, res)); diff != "" || res.Header.Get("Warning") != "" {
		t.Error(diff, res.Header)
	}
	g.allowOnly(func(a authorizer.Attributes) bool { return a.GetResource() == "fleetviews" })
	res = g.do(http.MethodGet, viewPrefix+"all/proxy/api/v1/namespaces/shop/pods", "u", nil)
	if status := statusOf(t, res); status.Code != http.StatusForbidden || strings.ContainsAny(status.Message, `"`) && strings.Contains(status.Message, `"b"`) {
		t.Errorf("got %v", status)
	}
}

func TestFleetview_RefusesWrites(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x"))}
	g := newGateway(t, members)
	for name, c := range map[string]struct {
		method, path string
		change       []func(*http.Request)
		code         int
		message      string
	}{
		"a delete":             {method: http.MethodDelete, path: "all/proxy/api/v1/namespaces/shop/pods/x", code: 405, message: "gateway kubeconfig MEMBER"},
		"a create":             {method: http.MethodPost, path: "all/proxy/api/v1/namespaces/shop/pods", code: 405, message: "read only"},
		"a review of others":   {method: http.MethodPost, path: "all/proxy/apis/authorization.k8s.io/v1/subjectaccessreviews", code: 405, message: "read only"},
		"exec":                 {method: http.MethodGet, path: "all/proxy/api/v1/namespaces/shop/pods/x/exec", code: 405, message: "read only"},
		"an unknown view":      {method: http.MethodGet, path: "none/proxy/api/v1/pods", code: 404, message: `fleetviews.view.fleetgate.io "none" not found`},
		"a malformed selector": {method: http.MethodGet, path: "labels:a=b=c/proxy/api/v1/pods", code: 400, message: "is not a label selector"},
		"a path with dots":     {method: http.MethodGet, path: "all/proxy/api/v1/../pods", code: 400, message: `".."`},
		"a view with a slash":  {method: http.MethodGet, path: "labels:a%2Fb=c/proxy/api/v1/pods", code: 404},
		"a version of nothing": {method: http.MethodGet, path: "all/proxy/api/v1/namespaces/shop/pods?resourceVersion=garbage", code: 400, message: "invalid resource version"},
		"a forged version":     {method: http.MethodGet, path: "all/proxy/api/v1/namespaces/shop/pods?resourceVersion=v1.!", code: 400, message: "invalid resource version"},
		"a timeout of hours":   {method: http.MethodGet, path: "all/proxy/api/v1/pods?memberTimeoutSeconds=3600", code: 400, message: "up to 30"},
		"protobuf alone":       {method: http.MethodGet, path: "all/proxy/api/v1/namespaces/shop/pods", change: []func(*http.Request){header("Accept", "application/vnd.kubernetes.protobuf")}, code: 406},
		"a kind of nobody":     {method: http.MethodGet, path: "all/proxy/apis/a.b/v1/cs", code: 404, message: "could not find"},
		"an empty choice":      {method: http.MethodGet, path: "labels:no=such/proxy/api/v1/pods", code: 403, message: "no member that you can reach"},
	} {
		t.Run(name, func(t *testing.T) {
			res := g.do(c.method, viewPrefix+c.path, "u", nil, c.change...)
			wantCode(t, res, c.code)
			if body := text(t, res); !strings.Contains(body, strings.ReplaceAll(c.message, `"`, `\"`)) {
				t.Errorf("got %s, want %s", body, c.message)
			}
		})
	}
}

func TestFleetview_RefusesUpgrade(t *testing.T) {
	g := newGateway(t, map[string]*member{"a": newMember(t, pods("x"))})
	_, _, res := g.raw("GET " + viewPrefix + "all/proxy/api/v1/namespaces/shop/pods?watch=1 HTTP/1.1\r\nHost: h\r\nX-Remote-User: u\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	wantCode(t, res, http.StatusMethodNotAllowed)
}

func TestFleetview_SelectorsChooseMembers(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, pods("y"))}
	view := &viewv1alpha1.FleetView{ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: viewv1alpha1.FleetViewSpec{
		MemberSelector: metav1.SetAsLabelSelector(map[string]string{"stage": "prod"}), Names: viewv1alpha1.NamesQualified,
	}}
	g := newGateway(t, members, withViews(view))
	g.inform.handler.OnUpdate(nil, memberCluster("a", 50, "stage=prod", "example.com/zone=1"))
	for path, want := range map[string][]string{
		"prod":                         {"a/a.x"},
		"labels:stage=prod":            {"a/x"},
		"labels:stage!=prod":           {"b/y"},
		"labels:stage%20in%20(prod,x)": {"a/x"},
		"labels:example.com:zone=1":    {"a/x"},
		"labels:":                      {"a/x", "b/y"},
		"qualified:":                   {"a/a.x", "b/b.y"},
	} {
		if diff := cmp.Diff(want, rows(t, g.do(http.MethodGet, viewPrefix+path+"/proxy/api/v1/namespaces/shop/pods", "u", nil))); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
}

func TestFleetview_SelectsByMemberLabel(t *testing.T) {
	seen := make(chan string, 10)
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, pods("x"))}
	members["b"].over(func(before http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			seen <- r.URL.Query().Get("labelSelector")
			before.ServeHTTP(w, r)
		}
	})
	g := newGateway(t, members)
	get := func(selector string) *http.Response {
		return g.do(http.MethodGet, podsOfAll+"?labelSelector="+url.QueryEscape(selector), "u", nil)
	}
	if got := rows(t, get("app=web,view.fleetgate.io/member in (b,c)")); !slices.Equal(got, []string{"b/x"}) {
		t.Errorf("got %v", got)
	}
	if selector := <-seen; selector != "app=web" {
		t.Errorf("the selector of the member is %q", selector)
	}
	wantCode(t, get("view.fleetgate.io/member=c"), http.StatusOK)
	if selector := <-seen; selector != "view.fleetgate.io/member,!view.fleetgate.io/member" {
		t.Errorf("the selector of the member is %q", selector)
	}
	wantCode(t, get("view.fleetgate.io/member in ("), http.StatusBadRequest)
}

// In a view that qualifies names, name fields in a selector are translated to the member's names. A
// member whose name does not match is not asked. If no member matches, the list is empty.
func TestFleetview_NamesInFieldSelectorsAreQualified(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	noting := func(member string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			seen[member] = r.URL.Query().Get("fieldSelector")
			mu.Unlock()
			if r.URL.Query().Get("labelSelector") != "" {
				pods()(w, r)
				return
			}
			pods("x")(w, r)
		}
	}
	g := newGateway(t, map[string]*member{"a": newMember(t, noting("a")), "b": newMember(t, noting("b"))})
	list := func(selector, more string) []string {
		return rows(t, g.do(http.MethodGet, viewPrefix+"qualified:/proxy/api/v1/namespaces/shop/pods?fieldSelector="+url.QueryEscape(selector)+more, "u", nil))
	}
	for _, more := range []string{"", "&limit=500", "&stream=true"} {
		if got := list("metadata.name=web", more); len(got) > 0 {
			t.Errorf("%s: of a name that is nobody's got %v", more, got)
		}
	}
	for selector, want := range map[string]map[string]string{
		"metadata.name=a.web,status.phase!=Running":       {"a": "metadata.name=web,status.phase!=Running"},
		"metadata.name!=a.web":                            {"a": "metadata.name!=web", "b": ""},
		"metadata.name=b.web.1,involvedObject.name=b.web": {"b": "involvedObject.name=web,metadata.name=web.1"},
	} {
		clear(seen)
		list(selector, "")
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("%s: %s", selector, diff)
		}
	}
}

// described serves the OpenAPI of one group as API servers do: by its hash, to which they redirect
// requests with another one.
func described(hash string) http.HandlerFunc {
	const path = "/openapi/v3/apis/apps/v1"
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		asked := r.URL.Query().Get("hash")
		switch {
		case r.URL.Path == "/openapi/v3":
			_, _ = fmt.Fprintf(w, `{"paths":{"apis/apps/v1":{"serverRelativeURL":"%s?hash=%s"}}}`, path, hash)
		case r.URL.Path == path && asked != "" && asked != hash:
			http.Redirect(w, r, path+"?hash="+hash, http.StatusMovedPermanently)
		case r.URL.Path == path:
			_, _ = fmt.Fprintf(w, `{"info":{"title":%q}}`, hash)
		default:
			http.NotFound(w, r)
		}
	}
}

func TestFleetview_OpenAPIIsTheMostFrequentOne(t *testing.T) {
	g := newGateway(t, map[string]*member{"a": newMember(t, described("ODD")), "b": newMember(t, described("EVEN")), "c": newMember(t, described("EVEN"))})
	const root = viewPrefix + "all/proxy"
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.NewDecoder(g.do(http.MethodGet, root+"/openapi/v3", "u", nil).Body).Decode(&index); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{index.Paths["apis/apps/v1"].ServerRelativeURL: "EVEN", "/openapi/v3/apis/apps/v1?hash=GONE": "ODD"} {
		if got := text(t, g.do(http.MethodGet, root+path, "u", nil)); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestFleetview_GetByName(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x", "y")), "a.b": newMember(t, pods("x"))}
	g := newGateway(t, members)
	get := func(view, name string) *http.Response {
		return g.do(http.MethodGet, viewPrefix+view+"/proxy/api/v1/namespaces/shop/pods/"+name+"?memberTimeoutSeconds=1", "u", nil)
	}
	name := func(res *http.Response) string {
		t.Helper()
		wantCode(t, res, http.StatusOK)
		var object metav1.PartialObjectMetadata
		if err := json.NewDecoder(res.Body).Decode(&object); err != nil {
			t.Fatal(err)
		}
		return object.Labels[viewv1alpha1.LabelMember] + "/" + object.Name
	}
	if got := name(get("all", "y")); got != "a/y" {
		t.Errorf("got %s", got)
	}
	if got := name(get("qualified:", "a.b.x")); got != "a.b/a.b.x" {
		t.Errorf("got %s", got)
	}
	if status := statusOf(t, get("all", "x")); status.Code != http.StatusConflict || !strings.Contains(status.Message, "is on 2 members (a, a.b)") {
		t.Errorf("got %v", status)
	}
	wantCode(t, get("all", "z"), http.StatusNotFound)
	wantCode(t, get("qualified:", "x"), http.StatusNotFound)
	members["a.b"].serve(silent)
	wantCode(t, get("all", "z"), http.StatusGatewayTimeout)
}

// breaking begins a list and breaks off.
func breaking(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"x"}},`)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// A reply that breaks off in the middle ends the response with an error, so that no client takes it
// for complete.
func TestFleetview_EndsWithErrorOnBrokenReply(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, http.HandlerFunc(breaking))}
	g := newGateway(t, members)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+viewPrefix+"all/proxy/api/v1/namespaces/shop/pods", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Remote-User", "u")
	res, err := g.client.Do(req)
	if err != nil {
		return // It broke before the first row was sent.
	}
	defer func() { _ = res.Body.Close() }()
	if content, err := io.ReadAll(res.Body); err == nil && res.StatusCode == http.StatusOK {
		t.Errorf("the response has a regular end: %s", content)
	}
}
