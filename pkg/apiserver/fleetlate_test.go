// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
)

const watchList = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"

// listedBy answers watches as one handler does, and lists as another.
func listedBy(lists, watches http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "true" {
			watches(w, r)
			return
		}
		lists(w, r)
	}
}

// A member that recovers while nobody else has answered begins the watch: what it lists is
// told from the first object on.
func TestAMemberThatRecoversBeforeOthersAnswerIsToldWhole(t *testing.T) {
	const objects, size = 128, 64 << 10 // More than a member may send that nobody reads.
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

// What was read of a member with the pages before is not all it has: who watches from such a
// list is told of the rest.
func TestAMemberThatIsLostBetweenPagesIsListedByTheWatch(t *testing.T) {
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
