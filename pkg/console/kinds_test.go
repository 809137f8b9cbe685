// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// fleetOf is the fleet view of a fleet that has widgets besides Deployments. asked counts the requests
// for its groups; down is true while it is unavailable.
type fleetOf struct {
	asked int
	down  bool
	lists []string
}

func (f *fleetOf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(r.URL.Path, "/proxy")
	if path == "/api" {
		f.asked++
	}
	if f.down {
		http.Error(w, "the gateway is unreachable", http.StatusServiceUnavailable)
		return
	}
	answers := map[string]string{
		"/api":                 `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1":              `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list"]},{"name":"secrets","namespaced":true,"kind":"Secret","verbs":["list"]}]}`,
		"/apis":                `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}},{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}],"preferredVersion":{"groupVersion":"example.com/v1","version":"v1"}}]}`,
		"/apis/apps/v1":        `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[{"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["list"]},{"name":"deployments/scale","namespaced":true,"kind":"Scale","verbs":["get"]}]}`,
		"/apis/example.com/v1": `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[{"name":"widgets","namespaced":false,"kind":"Widget","verbs":["list"]}]}`,
	}
	text, ok := answers[path]
	if !ok {
		f.lists = append(f.lists, path)
		text = noTable
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(text))
}

func TestSearch_OffersKindsOfFleet(t *testing.T) {
	fleet := &fleetOf{}
	server := httptest.NewServer(fleet)
	t.Cleanup(server.Close)
	clock := testingclock.NewFakeClock(time.Now())
	handler, err := (&Console{Hub: &overview.Hub{Config: &rest.Config{Host: server.URL}}, Clock: clock}).handler()
	if err != nil {
		t.Fatal(err)
	}
	page := get(handler, "/search?kind=widgets.example.com&namespace=shop").Body.String()
	for _, want := range []string{"<option>deployments</option>", "<option>secrets</option>", "<option selected>widgets.example.com</option>", "<caption>widgets.example.com"} {
		if !strings.Contains(page, want) {
			t.Errorf("missing %s in\n%s", want, page)
		}
	}
	if strings.Contains(page, "deployments.apps") || strings.Contains(page, "scale") {
		t.Errorf("duplicate kind, or one that cannot be listed:\n%s", page)
	}
	if want := "/apis/example.com/v1/widgets"; len(fleet.lists) != 1 || fleet.lists[0] != want {
		t.Errorf("requested %v, want %s without a namespace", fleet.lists, want)
	}
	if page := get(handler, "/search?kind=gadgets").Body.String(); !strings.Contains(page, "Unknown kind &#34;gadgets&#34;") || len(fleet.lists) != 1 {
		t.Errorf("page for an unknown kind:\n%s", page)
	}
	if fleet.asked != 1 {
		t.Errorf("%d requests for the fleet's groups within the TTL", fleet.asked)
	}
	clock.Step(kindsTTL)
	fleet.down = true
	for range 2 {
		page := get(handler, "/search?kind=deployments").Body.String()
		for _, want := range []string{"The list of kinds may be out of date", "<option selected>deployments</option>", "<option>widgets.example.com</option>"} {
			if !strings.Contains(page, want) {
				t.Errorf("page of an unavailable fleet lacks %s:\n%s", want, page)
			}
		}
	}
	if fleet.asked != 2 {
		t.Errorf("%d requests to an unavailable fleet within the TTL", fleet.asked-1)
	}
}
