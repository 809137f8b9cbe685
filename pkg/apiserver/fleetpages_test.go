// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// read returns the items of a response, as member/name, and the token of the next page.
func read(t *testing.T, res *http.Response) (items []string, next string) {
	t.Helper()
	list := listOf(t, res)
	for _, item := range list.Items {
		items = append(items, item.Labels[viewv1alpha1.LabelMember]+"/"+item.Name)
	}
	return items, list.Continue
}

// listOf decodes a list.
func listOf(t *testing.T, res *http.Response) (list metav1.PartialObjectMetadataList) {
	t.Helper()
	wantCode(t, res, http.StatusOK)
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

const podsOfAll = viewPrefix + "all/proxy/api/v1/namespaces/shop/pods"

// For random members, permissions on the hub, refusals of members and page sizes, a read of the
// fleet equals the reads of each member by the same caller, and no page exceeds its limit.
func TestFleetPages_EqualReadsOfEachMember(t *testing.T) {
	for seed := range uint64(25) {
		random := rand.New(rand.NewPCG(seed, 1))
		members, may := map[string]*member{}, map[string]bool{}
		for m := range 1 + random.IntN(9) {
			name := fmt.Sprintf("m%d", m)
			may[name] = random.IntN(4) > 0
			switch random.IntN(5) {
			case 0:
				members[name] = newMember(t, http.HandlerFunc(refusing))
			case 1:
				members[name] = newMember(t, http.NotFoundHandler())
			default:
				var names []string
				for i := range random.IntN(12) {
					names = append(names, fmt.Sprintf("p%02d", i))
				}
				members[name] = newMember(t, pods(names...))
			}
		}
		g := newGateway(t, members)
		everything := random.IntN(4) == 0
		g.allowOnly(func(a authorizer.Attributes) bool {
			return a.GetResource() == "fleetviews" || everything || may[a.GetName()]
		})
		var want []string
		for name := range members {
			res := g.do(http.MethodGet, prefix+name+"/proxy/api/v1/namespaces/shop/pods", "u", nil)
			if res.StatusCode != http.StatusOK {
				continue
			}
			items, _ := read(t, res)
			for _, item := range items {
				want = append(want, name+item)
			}
		}
		slices.Sort(want)
		for _, limit := range []int{0, 1, 2, 5, 7, 1000} {
			if got := pages(t, g, limit); len(want)+len(got) > 0 && !slices.Equal(want, got) {
				t.Fatalf("seed %d, limit %d: %s", seed, limit, cmp.Diff(want, got))
			}
		}
	}
}

// pages reads a list to its end; nothing if no member returns anything.
func pages(t *testing.T, g *gateway, limit int) (all []string) {
	t.Helper()
	next := ""
	for {
		res := g.do(http.MethodGet, podsOfAll+"?limit="+strconv.Itoa(limit)+"&continue="+url.QueryEscape(next), "u", nil)
		if next == "" && (res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusNotFound) {
			return nil
		}
		items, more := read(t, res)
		if limit > 0 && len(items) > limit {
			t.Fatalf("a page of %d has %d items", limit, len(items))
		}
		if all = append(all, items...); more == "" {
			return all
		}
		next = more
	}
}

func TestFleetPages_RejectInvalidTokens(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x", "y", "z")), "b": newMember(t, pods("x"))}
	g := newGateway(t, members)
	_, token := read(t, g.do(http.MethodGet, podsOfAll+"?limit=2", "u", nil))
	if token == "" || len(token) > 1000 {
		t.Fatalf("the token is %q", token)
	}
	follow := func(path, token string) *http.Response {
		return g.do(http.MethodGet, path+"continue="+url.QueryEscape(token), "u", nil)
	}
	content, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	made := strings.Replace(string(content), `"kind":"PodList"`, `"kind":"Table","columns":1`, 1)
	for name, res := range map[string]*http.Response{
		"with columns":   follow(podsOfAll+"?", base64.RawURLEncoding.EncodeToString([]byte(made))),
		"garbage":        follow(podsOfAll+"?", "!!"),
		"of a member":    follow(podsOfAll+"?", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0"),
		"huge":           follow(podsOfAll+"?", strings.Repeat("a", 40<<10)),
		"another list":   follow(podsOfAll+"?labelSelector=a%3Db&", token),
		"another view":   follow(strings.Replace(podsOfAll, "all", "labels:!no", 1)+"?", token),
		"with a version": follow(podsOfAll+"?resourceVersion=5&", token),
	} {
		if status := statusOf(t, res); status.Code != http.StatusBadRequest || status.Message == "" {
			t.Errorf("%s: got %v", name, status)
		}
	}
	if items, next := read(t, follow(podsOfAll+"?", token)); !slices.Equal(items, []string{"a/z", "b/x"}) || next != "" {
		t.Errorf("got %v, %q", items, next)
	}
	members["a"].serve(func(w http.ResponseWriter, _ *http.Request) { refuseWith(w, http.StatusGone, "compacted") })
	wantCode(t, follow(podsOfAll+"?", token), http.StatusGone)
	members["a"].serve(func(w http.ResponseWriter, _ *http.Request) {
		refuseWith(w, http.StatusBadRequest, "continue key is not valid")
	})
	wantCode(t, follow(podsOfAll+"?", token), http.StatusGone)
	wantCode(t, g.do(http.MethodGet, podsOfAll+"?limit=many", "u", nil), http.StatusBadRequest)
}

func TestFleetPages_ContinueWithoutUnresponsiveMember(t *testing.T) {
	members := map[string]*member{"a": newMember(t, pods("x", "y")), "b": newMember(t, http.HandlerFunc(silent)), "c": newMember(t, pods("z"))}
	g := newGateway(t, members)
	res := g.do(http.MethodGet, podsOfAll+"?limit=500&memberTimeoutSeconds=1", "u", nil)
	if items, next := read(t, res); !slices.Equal(items, []string{"a/x", "a/y", "c/z"}) || next != "" {
		t.Errorf("got %v, %q", items, next)
	}
	if warning := res.Header.Get("Warning"); !strings.Contains(warning, "1 of 3 members did not answer within 1s: b") {
		t.Errorf("got %s", warning)
	}
}

// A fleet request counts once for its user and once for each member; each leaves a record.
func TestFleetview_RequestCountsOnceForItsUser(t *testing.T) {
	var mu sync.Mutex
	var records []clustergateway.Record
	members := map[string]*member{"a": newMember(t, pods("x")), "b": newMember(t, pods("y")), "c": newMember(t, pods("z"))}
	g := newGateway(t, members, func(c *apiserver.Config) {
		c.MaxInFlightPerUser = 1
		c.Recorder = func(_ context.Context, r clustergateway.Record) {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
		}
	})
	if items, _ := read(t, g.do(http.MethodGet, podsOfAll, "u", nil)); len(items) != 3 {
		t.Fatalf("got %v", items)
	}
	g.stop()
	g.awaitEnd()
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprint(r.View, "/", r.Member, " ", r.User, " ", r.Verb, " ", r.Resource, " ", r.Code))
		if r.Bytes == 0 {
			t.Errorf("the record of member %q has no bytes", r.Member)
		}
	}
	slices.Sort(got)
	want := []string{"all/ u list pods 200", "all/a u list pods 200", "all/b u list pods 200", "all/c u list pods 200"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
