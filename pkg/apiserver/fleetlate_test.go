// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
)

const watchList = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// hanging begins a response and then sends nothing until its caller has disconnected.
func hanging(code int, beginning string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, beginning)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// listedBy uses separate handlers for lists and watches.
func listedBy(lists, watches http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			watches(w, r)
			return
		}
		lists(w, r)
	}
}

// A member that recovers before any other has answered begins the watch. All its objects are sent,
// from the first on.
func TestFleetWatch_SendsAllObjectsOfMemberThatRecoversFirst(t *testing.T) {
	const objects, size = 128, 64 << 10 // More than the gateway buffers for a member.
	events, asked, written := make(chan string), make(chan string, 10), make(chan struct{})
	var failed atomic.Bool
	var once sync.Once
	lists, all := watched(events, asked, "y"), listingOf(objects, size)
	recovering := listedBy(func(w http.ResponseWriter, r *http.Request) {
		if !failed.Swap(true) {
			refuseWith(w, http.StatusServiceUnavailable, "it starts")
			return
		}
		all(w, r)
		once.Do(func() { close(written) })
	}, watched(events, asked))
	g := newGateway(t, map[string]*member{"a": newMember(t, recovering), "b": newMember(t, released(written, lists))})
	w := g.watch(t, watchList+"&memberTimeoutSeconds=20&timeoutSeconds=50")
	want := map[string]bool{"ADDED Pod b/y": true}
	for n := range objects {
		want[fmt.Sprintf("ADDED Pod a/pod-%d", n)] = true
	}
	for len(want) > 0 {
		said, _ := w.next()
		if !want[said] {
			t.Fatalf("got %q while %d are missing", said, len(want))
		}
		delete(want, said)
	}
	if annotations, _ := w.bookmark(); annotations[metav1.InitialEventsAnnotationKey] != "true" || annotations[viewv1alpha1.AnnotationSilent] != "" {
		t.Errorf("got %v", annotations)
	}
}

func TestFleetview_EndlessRefusalDoesNotBlockOthers(t *testing.T) {
	members := map[string]*member{"good": newMember(t, pods("x"))}
	for _, code := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusBadRequest} {
		members[fmt.Sprint("a", code)] = newMember(t, hanging(code, `{"kind":"Status"`))
	}
	g := newGateway(t, members)
	for _, query := range []string{"", "&limit=5", "&stream=true"} {
		began := time.Now()
		res := g.do(http.MethodGet, podsOfAll+"?memberTimeoutSeconds=3"+query, "u", nil)
		if got := rows(t, res); !slices.Equal(got, []string{"good/x"}) {
			t.Errorf("%s: got %v", query, got)
		}
		// The limit must not be the server's, which is a minute.
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %v", query, took)
		}
	}
}

func TestFleetWatch_StalledListDoesNotBlockInitialBookmark(t *testing.T) {
	for name, beginning := range map[string]string{
		"before its first item":  ``,
		"in its items":           `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[{"metadata":{"name":"half"`,
		"with its version later": `{"kind":"PodList","apiVersion":"v1","items":[`,
	} {
		t.Run(name, func(t *testing.T) {
			events, asked := make(chan string), make(chan string, 10)
			stalls := newMember(t, listedBy(hanging(http.StatusOK, beginning), watched(events, asked)))
			g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x")), "b": stalls})
			w := g.watch(t, watchList+"&memberTimeoutSeconds=3&timeoutSeconds=40")
			w.wants("ADDED Pod a/x")
			annotations, _ := w.bookmark()
			if diff := cmp.Diff(map[string]string{metav1.InitialEventsAnnotationKey: "true", viewv1alpha1.AnnotationSilent: "b"}, annotations); diff != "" {
				t.Error(diff)
			}
			stalls.serve(watched(events, asked, "y"))
			stalls.disconnect()
			stalls.connected.Store(true)
			for said := ""; said != "ADDED Pod b/y"; {
				if said, _ = w.next(); said != "BOOKMARK Pod" && said != "ADDED Pod b/y" {
					t.Fatalf("got %q", said)
				}
			}
		})
	}
}

// When the only member that the watch waits for leaves, the watch stops waiting.
func TestFleetWatch_InitialBookmarkComesWhenLastMissingMemberLeaves(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	stalls := listedBy(hanging(http.StatusOK, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"3"},"items":[`), watched(nil, asked))
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x")), "b": newMember(t, stalls)}, oftenReviewed)
	w := g.watch(t, watchList+"&memberTimeoutSeconds=30&timeoutSeconds=20")
	w.wants("ADDED Pod a/x")
	_, _ = <-asked, <-asked
	events <- podEvent("ADDED", "x2", 7)
	w.wants("ADDED Pod a/x2") // All objects of a have been sent, and the watch waits for b.
	g.inform.handler.OnDelete(memberCluster("b", 60))
	annotations, _ := w.bookmark()
	if diff := cmp.Diff(map[string]string{metav1.InitialEventsAnnotationKey: "true"}, annotations); diff != "" {
		t.Error(diff)
	}
}

// A list that takes longer than the watch's deadline gets more time once the other members are
// served.
func TestFleetWatch_IncludesMemberWithSlowList(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	slow := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(4 * time.Second):
			pods("y")(w, r)
		case <-r.Context().Done():
		}
	}
	g := newGateway(t, map[string]*member{"a": newMember(t, watched(events, asked, "x")), "b": newMember(t, listedBy(slow, watched(events, asked)))})
	w := g.watch(t, "memberTimeoutSeconds=3&timeoutSeconds=40")
	w.wants("ADDED Pod a/x", "ADDED Pod b/y")
}

// The pages have only a part of the lost member's objects. A watch that starts from such a list
// must send the rest.
func TestFleetWatch_ListsMemberLostBetweenPages(t *testing.T) {
	events, asked := make(chan string), make(chan string, 10)
	for name, lost := range map[string]http.HandlerFunc{
		"silent": silent, "refusing": refusing, "without the kind": http.NotFound,
		"failing": func(w http.ResponseWriter, _ *http.Request) { refuseWith(w, http.StatusInternalServerError, "etcd") },
	} {
		t.Run(name, func(t *testing.T) {
			well := watched(events, asked, "x", "y", "z")
			members := map[string]*member{"a": newMember(t, watched(events, asked)), "b": newMember(t, well)}
			g := newGateway(t, members)
			_, next := read(t, g.do(http.MethodGet, podsOfAll+"?limit=2", "u", nil))
			members["b"].serve(lost)
			list := listOf(t, g.do(http.MethodGet, podsOfAll+"?limit=2&memberTimeoutSeconds=3&continue="+url.QueryEscape(next), "u", nil))
			if len(list.Items) > 0 || list.Continue != "" {
				t.Fatalf("got %v", list)
			}
			members["b"].serve(well)
			g.watch(t, "timeoutSeconds=20&resourceVersion="+list.ResourceVersion).wants("ADDED Pod b/x", "ADDED Pod b/y", "ADDED Pod b/z")
		})
	}
}

// Members that wait for each other must be asked concurrently.
func TestFleetPages_RequestMembersConcurrently(t *testing.T) {
	const count = 40
	var arrived sync.WaitGroup
	arrived.Add(count)
	all := make(chan struct{})
	go func() {
		arrived.Wait()
		close(all)
	}()
	members := map[string]*member{}
	for n := range count {
		var once sync.Once
		wait := released(all, pods("x"))
		members[fmt.Sprintf("m%02d", n)] = newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once.Do(arrived.Done)
			wait(w, r)
		}))
	}
	t.Cleanup(func() {
		select {
		case <-all:
		default: // Some were never asked.
			t.Error("not all members got a request")
		}
	})
	g := newGateway(t, members)
	res := g.do(http.MethodGet, podsOfAll+"?limit=500&memberTimeoutSeconds=5", "u", nil)
	if got := rows(t, res); len(got) != count || !slices.IsSorted(got) {
		t.Errorf("got %v", got)
	}
	if warning := res.Header.Values("Warning"); len(warning) > 0 {
		t.Errorf("got %q", warning)
	}
}

// slowly reads a watch more slowly than members can write, until that many objects have arrived.
func slowly(t *testing.T, res *http.Response, objects int) (size int64) {
	t.Helper()
	lines := bufio.NewReaderSize(res.Body, 64<<10)
	for range objects {
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, "ADDED") {
			t.Fatalf("%v: got %.100q", err, line)
		}
		size += int64(len(line))
		time.Sleep(3 * time.Millisecond)
	}
	return size
}
