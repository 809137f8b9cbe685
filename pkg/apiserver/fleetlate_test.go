// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"fmt"
	"net/http"
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
