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
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver"
)

// watched has pods, and sends what comes out of a channel to watches; asked gets the version from
// which each watch begins.
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
			Rows              []struct {
				Cells  []any
				Object metav1.PartialObjectMetadata
			}
		}
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		w.t.Fatal(err)
	}
	if event.Type == "ERROR" {
		return fmt.Sprint("ERROR ", event.Object.Code), ""
	}
	of := event.Object
	if of.Kind == "Table" {
		row := of.Rows[0]
		if len(row.Cells) != 2 || row.Cells[0] != row.Object.Labels[viewv1alpha1.LabelMember] || row.Cells[1] != row.Object.Name {
			w.t.Errorf("got the cells %v", row.Cells)
		}
		of.Kind, of.ObjectMeta = "Pod", row.Object.ObjectMeta
	}
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

func TestFleetWatch_MergesMembers(t *testing.T) {
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
	// Another watch resumes at the bookmark. A member's watch that ends is restarted.
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

// A client without bookmarks resumes from the version of the last event that it got. Another
// gateway did not send that event, and does not know the position of other members.
func TestFleetWatch_ResumesFromLastEvent(t *testing.T) {
	for name, accept := range map[string]string{"objects": "application/json", "tables": "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		t.Run(name, func(t *testing.T) {
			events := map[string]chan string{"a": make(chan string), "b": make(chan string)}
			asked := make(chan string, 10)
			members := map[string]*member{"a": newMember(t, watched(events["a"], asked, "x")), "b": newMember(t, watched(events["b"], asked, "y"))}
			tell := podEvent
			if name == "tables" {
				members = map[string]*member{"a": newMember(t, inTables(watched(events["a"], asked), "x")), "b": newMember(t, inTables(watched(events["b"], asked), "y"))}
				tell = podTableEvent
			}
			g := newGateway(t, members)
			from := func(g *gateway, version string, code int) watching {
				res := g.do(http.MethodGet, podsOfAll+"?watch=true&resourceVersion="+version, "u", nil, header("Accept", accept))
				wantCode(t, res, code)
				return watching{t: t, lines: bufio.NewReader(res.Body)}
			}
			w := from(g, "", http.StatusOK)
			w.wantsGrowing("ADDED Pod a/x", "ADDED Pod b/y")
			<-asked
			<-asked
			events["b"] <- tell("MODIFIED", "y", 900)
			w.wantsGrowing("MODIFIED Pod b/y")
			events["a"] <- tell("ADDED", "x2", 7)
			said, version := w.next()
			if said != "ADDED Pod a/x2" {
				t.Fatalf("got %q", said)
			}
			from(g, version, http.StatusOK)
			if got := map[string]bool{<-asked: true, <-asked: true}; !got["7"] || !got["900"] {
				t.Errorf("members are watched from %v", got)
			}
			from(newGateway(t, members), version, http.StatusGone)
		})
	}
}

// podTableEvent is podEvent as a table.
func podTableEvent(kind, name string, version int) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"%d"},"columnDefinitions":[{"name":"Name","type":"string","format":"name"}],`+
		`"rows":[{"cells":[%q],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"shop","name":%q,"resourceVersion":"%d"}}}]}}`, kind, version, name, name, version)
}

// wantsGrowing is wants, in any order, for events with numeric, growing versions.
func (w watching) wantsGrowing(events ...string) {
	w.t.Helper()
	var got []string
	before := uint64(1 << 60) // Members' versions are smaller.
	for range events {
		said, version := w.next()
		number, err := strconv.ParseUint(version, 10, 63)
		if err != nil || number <= before {
			w.t.Fatalf("%s has version %s after %d", said, version, before)
		}
		got, before = append(got, said), number
	}
	slices.Sort(got)
	if diff := cmp.Diff(events, got); diff != "" {
		w.t.Fatal(diff)
	}
}

func TestFleetWatch_WithoutVersionBeginsWithPresentObjects(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	members := map[string]*member{"a": newMember(t, watched(events, asked, "x", "y")), "b": newMember(t, http.HandlerFunc(refusing))}
	g := newGateway(t, members)
	w := g.watch(t, "timeoutSeconds=60")
	w.wants("ADDED Pod a/x", "ADDED Pod a/y")
	if from := <-asked; from != "3" {
		t.Errorf("it is watched from %s", from)
	}
	// The watch can compensate for a member's compaction, because it knows what it has sent.
	members["a"].serve(watched(events, asked, "y", "z"))
	events <- `{"type":"ERROR","object":{"kind":"Status","code":410}}`
	w.wants("MODIFIED Pod a/y", "ADDED Pod a/z", "DELETED Pod a/x")
}

func TestFleetWatch_ResumedWatchEndsOnCompaction(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x"))})
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(g.do(http.MethodGet, podsOfAll, "u", nil).Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	w := g.watch(t, "resourceVersion="+list.ResourceVersion)
	events <- `{"type":"ERROR","object":{"kind":"Status","code":410}}`
	w.wants("ERROR 410")
	if _, err := w.lines.ReadByte(); err != io.EOF {
		t.Errorf("it does not end: %v", err)
	}
}

func TestFleetWatch_WatchListSendsInitialBookmark(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	members := map[string]*member{"a": newMember(t, watched(events, asked, "x", "y")), "b": newMember(t, watched(events, asked)), "c": newMember(t, http.HandlerFunc(silent))}
	g := newGateway(t, members)
	w := g.watch(t, watchList+"&memberTimeoutSeconds=1")
	w.wants("ADDED Pod a/x", "ADDED Pod a/y")
	annotations, version := w.bookmark()
	if diff := cmp.Diff(map[string]string{metav1.InitialEventsAnnotationKey: "true", viewv1alpha1.AnnotationSilent: "c"}, annotations); diff != "" {
		t.Error(diff)
	}
	g.watch(t, "resourceVersion="+version)
	for query, code := range map[string]int{
		"sendInitialEvents=true&allowWatchBookmarks=true": 422, "resourceVersionMatch=NotOlderThan": 422,
		"sendInitialEvents=false&resourceVersionMatch=NotOlderThan": 422,
	} {
		wantCode(t, g.do(http.MethodGet, podsOfAll+"?watch=true&"+query, "u", nil), code)
	}
	res := g.do(http.MethodGet, podsOfAll+"?watch=true&"+watchList, "u", nil, header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"))
	wantCode(t, res, http.StatusUnprocessableEntity)
}

// bookmark is the annotations and the version of the next event, which must be a bookmark.
func (w watching) bookmark() (annotations map[string]string, version string) {
	w.t.Helper()
	line, err := w.lines.ReadString('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	var event struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal([]byte(line), &event); err != nil || event.Type != "BOOKMARK" || event.Object.Kind != "Pod" {
		t := w.t
		t.Fatalf("%v: got %s", err, line)
	}
	return event.Object.Annotations, event.Object.ResourceVersion
}

// A client that stays until the watch's timeout gets a version to resume from, even if events never
// paused.
func TestFleetWatch_EndsWithBookmark(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x"))})
	w := g.watch(t, "timeoutSeconds=1&allowWatchBookmarks=true")
	w.wants("ADDED Pod a/x")
	_, version := w.bookmark()
	g.watch(t, "resourceVersion="+version)
}

func oftenReviewed(c *apiserver.Config) { c.ReviewPeriod = 50 * time.Millisecond }

// The objects of new members are sent as ADDED, those of members that leave as DELETED.
func TestFleetWatch_FollowsMembers(t *testing.T) {
	for name, accept := range map[string]string{"objects": "application/json", "tables": "application/json;as=Table;v=v1;g=meta.k8s.io"} {
		t.Run(name, func(t *testing.T) {
			events, asked := make(chan string), make(chan string, 10)
			members := map[string]*member{"a": newMember(t, watched(events, asked, "x")), "b": newMember(t, watched(events, asked, "y", "z"))}
			if name == "tables" {
				members = map[string]*member{"a": newMember(t, inTables(watched(events, asked, "x"), "x")), "b": newMember(t, inTables(watched(events, asked, "y", "z"), "y", "z"))}
			}
			g := newGateway(t, members, oftenReviewed)
			g.inform.handler.OnUpdate(nil, memberCluster("a", 50, "stage=prod"))
			res := g.do(http.MethodGet, viewPrefix+"labels:stage=prod/proxy/api/v1/namespaces/shop/pods?watch=true", "u", nil, header("Accept", accept))
			wantCode(t, res, http.StatusOK)
			w := watching{t: t, lines: bufio.NewReader(res.Body)}
			w.wants("ADDED Pod a/x")
			g.inform.handler.OnUpdate(nil, memberCluster("b", 51, "stage=prod"))
			w.wants("ADDED Pod b/y", "ADDED Pod b/z")
			g.inform.handler.OnUpdate(nil, memberCluster("b", 52))
			w.wants("DELETED Pod b/y", "DELETED Pod b/z")
			g.inform.handler.OnUpdate(nil, memberCluster("b", 53, "stage=prod"))
			w.wants("ADDED Pod b/y", "ADDED Pod b/z")
		})
	}
}

// inTables lists pods as a table.
func inTables(watched http.HandlerFunc, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			watched(w, r)
			return
		}
		var rows []string
		for _, name := range names {
			rows = append(rows, fmt.Sprintf(`{"cells":[%q],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"namespace":"shop","name":%q}}}`, name, name))
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"3"},"columnDefinitions":[{"name":"Name","type":"string","format":"name"}],"rows":[%s]}`, strings.Join(rows, ","))
	}
}

func TestFleetWatch_ResumedWatchEndsWhenMemberLeaves(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x")), "b": newMember(t, watched(events, asked, "y"))}, oftenReviewed)
	var list metav1.PartialObjectMetadataList
	if err := json.NewDecoder(g.do(http.MethodGet, podsOfAll, "u", nil).Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	w := g.watch(t, "resourceVersion="+list.ResourceVersion)
	g.inform.handler.OnDelete(memberCluster("b", 60))
	w.wants("ERROR 410")
}

func TestFleetWatch_EndsWhenPermissionIsLost(t *testing.T) {
	for want, lost := range map[string]func(authorizer.Attributes) bool{
		"ERROR 403":       func(a authorizer.Attributes) bool { return a.GetResource() == "fleetviews" },
		"DELETED Pod a/x": func(a authorizer.Attributes) bool { return a.GetResource() == "clustergateways" },
	} {
		events, asked := make(chan string), make(chan string, 10)
		g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x"))}, oftenReviewed)
		w := g.watch(t, "")
		w.wants("ADDED Pod a/x")
		g.allowOnly(func(a authorizer.Attributes) bool { return !lost(a) })
		w.wants(want)
	}
}

func TestFleetWatch_RejectsInvalidRequests(t *testing.T) {
	members := map[string]*member{"a": newMember(t, http.HandlerFunc(refusing))}
	g := newGateway(t, members)
	for query, code := range map[string]int{
		"": 403, "resourceVersion=17": 410, "resourceVersion=v1.!": 400, "timeoutSeconds=x": 400,
	} {
		wantCode(t, g.do(http.MethodGet, podsOfAll+"?watch=true&"+query, "u", nil), code)
	}
	members["a"].disconnect()
	wantCode(t, g.do(http.MethodGet, podsOfAll+"?watch=true", "u", nil), http.StatusServiceUnavailable)
}
