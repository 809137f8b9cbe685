// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// released delays a handler until the channel is closed.
func released(let <-chan struct{}, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-let:
			next(w, r)
		case <-r.Context().Done():
		}
	}
}

func TestFleetStream_SendsRowsAsTheyArrive(t *testing.T) {
	let := make(chan struct{})
	members := map[string]*member{
		"a": newMember(t, released(let, pods("x"))), "b": newMember(t, pods("y")), "c": newMember(t, http.HandlerFunc(refusing)), "d": newMember(t, http.HandlerFunc(silent)),
	}
	g := newGateway(t, members)
	res := g.do(http.MethodGet, podsOfAll+"?stream=true&memberTimeoutSeconds=1", "u", nil)
	wantCode(t, res, http.StatusOK)
	lines := bufio.NewReader(res.Body)
	before, err := lines.ReadString('}')
	for err == nil && !strings.Contains(before, `"y"`) {
		var more string
		more, err = lines.ReadString('}')
		before += more
	}
	if err != nil {
		t.Fatal(err)
	}
	close(let) // Only now the first member by name answers.
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items    []struct{ Metadata struct{ Name string } }
		Metadata struct {
			ResourceVersion string
			Warnings        []string
		}
	}
	if err := json.Unmarshal([]byte(before+string(rest)), &list); err != nil {
		t.Fatalf("%v: %s%s", err, before, rest)
	}
	if len(list.Items) != 2 || list.Items[0].Metadata.Name != "y" || list.Items[1].Metadata.Name != "x" {
		t.Errorf("got %v", list.Items)
	}
	want := []string{"1 of 4 members did not answer within 1s: d", "1 of 4 members do not let you list pods in namespace shop: c"}
	if diff := cmp.Diff(want, list.Metadata.Warnings); diff != "" {
		t.Error(diff)
	}
	g.watch(t, "resourceVersion="+list.Metadata.ResourceVersion)
	wantCode(t, g.do(http.MethodGet, podsOfAll+"?stream=maybe", "u", nil), http.StatusBadRequest)
	for _, m := range members {
		m.serve(refusing)
	}
	wantCode(t, g.do(http.MethodGet, podsOfAll+"?stream=true", "u", nil), http.StatusForbidden)
}

// A stream of rows that breaks off must not look complete either.
func TestFleetStream_EndsWithErrorOnBrokenReply(t *testing.T) {
	g := newGateway(t, map[string]*member{"a": newMember(t, http.HandlerFunc(breaking)), "b": newMember(t, pods("y"))})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+g.address+podsOfAll+"?stream=true", http.NoBody)
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

// Equal warnings of several members are passed on once.
func TestFleetview_PassesWarningsOfMembersOnce(t *testing.T) {
	warning := func(texts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for _, text := range texts {
				w.Header().Add("Warning", `299 - "`+text+`"`)
			}
			pods("x")(w, r)
		}
	}
	many := make([]string, 30)
	for i := range many {
		many[i] = strings.Repeat("w", i+1)
	}
	g := newGateway(t, map[string]*member{"a": newMember(t, warning("v1 is deprecated")), "b": newMember(t, warning("v1 is deprecated", "v2 is there")), "c": newMember(t, warning(many...))})
	for _, query := range []string{"", "?limit=10"} {
		got := g.do(http.MethodGet, podsOfAll+query, "u", nil).Header.Values("Warning")
		if len(got) != 8 || !slices.Equal(got[:2], []string{`299 - "v1 is deprecated"`, `299 - "v2 is there"`}) {
			t.Errorf("%s: got %q", query, got)
		}
	}
}

// With proxy.authorizeMemberRequests, a request on a member that the hub denies is also denied in a view.
func TestAuthorizeMemberRequests_AppliesToViews(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, pods("y"))}
	g := newGateway(t, members, func(c *apiserver.Config) { c.AuthorizeMemberRequests = true })
	g.allowOnly(func(a authorizer.Attributes) bool {
		return a.GetAPIGroup() != clustergateway.InnerGroup || a.GetName() == "a" && a.GetResource() == "pods" && a.GetVerb() == "list" && a.GetNamespace() == "shop"
	})
	res := g.do(http.MethodGet, podsOfAll, "u", nil)
	if diff := cmp.Diff([]string{"a/x"}, rows(t, res)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`299 - "1 of 2 members do not let you list pods in namespace shop: b"`}, res.Header.Values("Warning")); diff != "" {
		t.Error(diff)
	}
	// A caller that may list but not watch gets nothing from a watch, although the watch would list
	// first.
	wantCode(t, g.do(http.MethodGet, podsOfAll+"?watch=true&timeoutSeconds=1", "u", nil), http.StatusForbidden)
	wantCode(t, g.do(http.MethodGet, viewPrefix+"all/proxy/api/v1/namespaces/shop/pods/x", "u", nil), http.StatusForbidden)
}
