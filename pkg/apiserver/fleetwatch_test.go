// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver"
)

// watched has pods, and passes on what comes out of a channel to whoever watches; asked
// gets the version from which each watch begins.
func watched(events <-chan string, asked chan<- string, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "true" {
			pods(names...)(w, r)
			return
		}
		asked <- r.URL.Query().Get("resourceVersion")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case event, more := <-events:
				if !more {
					return
				}
				_, _ = io.WriteString(w, event+"\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
}

func podEvent(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":"%d"}}}`, kind, name, version)
}

// watching reads a watch.
type watching struct {
	t     *testing.T
	lines *bufio.Reader
}

func (g *gateway) watch(t *testing.T, query string) watching {
	t.Helper()
	res := g.do(http.MethodGet, podsOfAll+"?watch=true&"+query, "u", nil)
	wantCode(t, res, http.StatusOK)
	return watching{t: t, lines: bufio.NewReader(res.Body)}
}

// next is the next event: its type, its member and name, or its code; and its version.
func (w watching) next() (said, version string) {
	w.t.Helper()
	line, err := w.lines.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	var event struct {
		Type   string
		Object struct {
			metav1.ObjectMeta `json:"metadata"`
			Kind              string
			Code              int
		}
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		w.t.Fatal(err)
	}
	if event.Type == "ERROR" {
		return fmt.Sprint("ERROR ", event.Object.Code), ""
	}
	of := event.Object
	return strings.TrimSuffix(event.Type+" "+of.Kind+" "+of.Labels[viewv1alpha1.LabelMember]+"/"+of.Name, " /"), of.ResourceVersion
}

func (w watching) wants(events ...string) {
	w.t.Helper()
	for _, want := range events {
		if got, _ := w.next(); got != want {
			w.t.Fatalf("got %q, want %q", got, want)
		}
	}
}

func TestManyAreWatchedAsOne(t *testing.T) {
	events := map[string]chan string{"a": make(chan string), "b": make(chan string)}
	asked := make(chan string, 10)
	members := map[string]*member{"a": newMember(t, watched(events["a"], asked, "x")), "b": newMember(t, watched(events["b"], asked, "y"))}
	g := newGateway(t, members)
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(g.do(http.MethodGet, podsOfAll+"?limit=1", "u", nil).Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(g.do(http.MethodGet, podsOfAll+"?limit=1&continue="+url.QueryEscape(list.Continue), "u", nil).Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	w := g.watch(t, "allowWatchBookmarks=true&resourceVersion="+list.ResourceVersion)
	if diff := cmp.Diff([]string{"3", "3"}, []string{<-asked, <-asked}); diff != "" {
		t.Errorf("members are watched from other versions than they were listed at: %s", diff)
	}
	events["a"] <- podEvent("ADDED", "x2", 7)
	w.wants("ADDED Pod a/x2")
	events["b"] <- podEvent("DELETED", "y", 9)
	events["b"] <- podEvent("BOOKMARK", "", 11)
	w.wants("DELETED Pod b/y")
	said, version := w.next()
	if said != "BOOKMARK Pod" {
		t.Fatalf("got %q", said)
	}
	// Another watch goes on where the bookmark is; a member's that ends is followed anew.
	g.watch(t, "resourceVersion="+version)
	if got := map[string]bool{<-asked: true, <-asked: true}; !got["7"] || !got["11"] {
		t.Errorf("members are watched from %v", got)
	}
	members["b"].disconnect()
	members["b"].connected.Store(true)
	if got := []string{<-asked, <-asked}; got[0] != "11" || got[1] != "11" {
		t.Errorf("the member that was lost is followed from %v", got)
	}
}

func TestAWatchWithoutAVersionBeginsWithWhatIsThere(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x", "y")), "b": newMember(t, http.HandlerFunc(refusing))})
	w := g.watch(t, "timeoutSeconds=60")
	w.wants("ADDED Pod a/x", "ADDED Pod a/y")
	if from := <-asked; from != "3" {
		t.Errorf("it is watched from %s", from)
	}
	events <- `{"type":"ERROR","object":{"kind":"Status","code":410}}`
	w.wants("ERROR 410")
	if _, err := w.lines.ReadByte(); err != io.EOF {
		t.Errorf("it does not end: %v", err)
	}
}

func oftenReviewed(c *apiserver.Config) { c.ReviewPeriod = 50 * time.Millisecond }

func TestAWatchEndsWithItsMembers(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x"))}, oftenReviewed)
	w := g.watch(t, "")
	w.wants("ADDED Pod a/x")
	g.inform.handler.OnAdd(memberCluster("c", 99), false)
	w.wants("ERROR 410")
}

func TestAWatchEndsWithTheRightToIt(t *testing.T) {
	for name, lost := range map[string]func(authorizer.Attributes) bool{
		"ERROR 403": func(a authorizer.Attributes) bool { return a.GetResource() == "fleetviews" },
		"ERROR 410": func(a authorizer.Attributes) bool { return a.GetResource() == "clustergateways" },
	} {
		events, asked := make(chan string), make(chan string, 10)
		g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x"))}, oftenReviewed)
		w := g.watch(t, "")
		w.wants("ADDED Pod a/x")
		g.allowOnly(func(a authorizer.Attributes) bool { return !lost(a) })
		w.wants(name)
	}
}

func TestWatchesThatCannotBegin(t *testing.T) {
	members := map[string]*member{"a": newMember(t, http.HandlerFunc(refusing))}
	g := newGateway(t, members)
	for query, code := range map[string]int{
		"": 403, "resourceVersion=17": 410, "resourceVersion=v1.!": 400, "timeoutSeconds=x": 400,
		"sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true": 422,
	} {
		wantCode(t, g.do(http.MethodGet, podsOfAll+"?watch=true&"+query, "u", nil), code)
	}
	members["a"].disconnect()
	wantCode(t, g.do(http.MethodGet, podsOfAll+"?watch=true", "u", nil), http.StatusServiceUnavailable)
}
