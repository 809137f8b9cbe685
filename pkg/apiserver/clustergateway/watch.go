// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// watchBacklog is how many events a slow watcher may be behind. Beyond that, its watch ends and it
// lists again.
const watchBacklog = 256

// memberWatch is one watch. Its events are sent with the lock of the Inventory held, so they never
// block.
type memberWatch struct {
	members *Inventory
	events  chan watch.Event
	view    func(state) runtime.Object
	matches func(*clusterv1beta1.MemberCluster) bool
}

// watchOptions say what a watch selects and where it begins.
type watchOptions struct {
	// from is the resourceVersion after which to begin; "" and "0" begin with the present members.
	from string
	// initial asks for the present members, whatever from is. The server also sets it for old
	// clients that send no version.
	initial bool
	// bookmarks allows a bookmark after the present members. Clients that did not ask for bookmarks
	// get none: the server's own handler fails on one.
	bookmarks bool
	matches   func(*clusterv1beta1.MemberCluster) bool
	view      func(state) runtime.Object
	// bookmark creates the object of the bookmark after the present members.
	bookmark func(resourceVersion string) runtime.Object
}

var _ watch.Interface = (*memberWatch)(nil)

// watch begins a watch. It fails with 410 if from is older than the history.
func (m *Inventory) watch(o watchOptions) (*memberWatch, error) {
	present := o.initial || o.from == "" || o.from == "0"
	var from uint64
	if !present {
		var err error
		if from, err = strconv.ParseUint(o.from, 10, 64); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("invalid resourceVersion %q", o.from))
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &memberWatch{members: m, view: o.view, matches: o.matches}
	if present {
		w.sendPresent(m.states())
		if o.initial && o.bookmarks {
			w.events <- watch.Event{Type: watch.Bookmark, Object: o.bookmark(strconv.FormatUint(m.version, 10))}
		}
	} else if err := w.sendSince(from, m.floor, m.history); err != nil {
		return nil, err
	}
	m.watchers[w] = struct{}{}
	return w, nil
}

func (w *memberWatch) sendPresent(all []state) {
	w.events = make(chan watch.Event, len(all)+1+watchBacklog)
	for _, now := range all {
		w.send(change{now: now})
	}
}

func (w *memberWatch) sendSince(from, floor uint64, history []change) error {
	if from < floor {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, floor))
	}
	w.events = make(chan watch.Event, len(history)+watchBacklog)
	for _, c := range history {
		if c.version > from || c.late && c.version == from {
			w.send(c)
		}
	}
	return nil
}

// send reports whether there was room.
func (w *memberWatch) send(c change) bool {
	event, ok := w.eventOf(c)
	if !ok {
		return true
	}
	select {
	case w.events <- event:
		return true
	default:
		return false
	}
}

// eventOf translates a change for this watch: a member that no longer matches is deleted for it.
func (w *memberWatch) eventOf(c change) (watch.Event, bool) {
	before := c.old.member != nil && w.matches(c.old.member)
	after := c.now.member != nil && w.matches(c.now.member)
	switch {
	case after && before:
		return watch.Event{Type: watch.Modified, Object: w.view(c.now)}, true
	case after:
		return watch.Event{Type: watch.Added, Object: w.view(c.now)}, true
	case before:
		return watch.Event{Type: watch.Deleted, Object: w.atVersion(c.old, c.version)}, true
	}
	return watch.Event{}, false
}

func (w *memberWatch) atVersion(s state, version uint64) runtime.Object {
	object := w.view(s)
	if accessor, ok := object.(metav1.Object); ok {
		accessor.SetResourceVersion(strconv.FormatUint(version, 10))
	}
	return object
}

// ResultChan is the watch's events; it is closed when the watch ends.
func (w *memberWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *memberWatch) Stop() {
	w.members.mu.Lock()
	defer w.members.mu.Unlock()
	w.members.drop(w)
}
