// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	// debounce is how long changes are collected before pages are notified: a fleet changes all the
	// time.
	debounce = 500 * time.Millisecond
	// rewatchAfter is the pause before a watch that has ended is re-created.
	rewatchAfter = 2 * time.Second
	// keepAlive is how often an idle page receives a comment, so that it detects a lost connection.
	keepAlive = 15 * time.Second
)

// signals notify pages of changes. Pages then reload to see what has changed.
type signals struct {
	mu        sync.Mutex
	listeners map[chan struct{}]bool
}

func newSignals() *signals { return &signals{listeners: map[chan struct{}]bool{}} }

// listen returns a channel that gets a value after a change.
func (s *signals) listen() (changed chan struct{}, leave func()) {
	changed = make(chan struct{}, 1)
	s.mu.Lock()
	s.listeners[changed] = true
	s.mu.Unlock()
	return changed, func() {
		s.mu.Lock()
		delete(s.listeners, changed)
		s.mu.Unlock()
	}
}

func (s *signals) notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for listener := range s.listeners {
		select {
		case listener <- struct{}{}:
		default: // The previous notification is still pending.
		}
	}
}

// watch watches the kinds that pages show until the context ends: members completely, others by their
// metadata.
func (c *Console) watch(ctx context.Context) {
	var group sync.WaitGroup
	lists := []client.ObjectList{&clusterv1beta1.MemberClusterList{}}
	for _, kind := range []string{"ClusterResourcePlacement", "ResourcePlacement", "ClusterStagedUpdateRun", "StagedUpdateRun"} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind + "List"))
		lists = append(lists, list)
	}
	for _, list := range lists {
		group.Go(func() {
			for ctx.Err() == nil {
				c.follow(ctx, list)
				wait(ctx, rewatchAfter)
			}
		})
	}
	group.Wait()
}

// follow notifies pages of changes until the watch ends. A kind that the user is not allowed to watch
// is not live; its page shows errors of reading it.
func (c *Console) follow(ctx context.Context, list client.ObjectList) {
	watched, err := c.Hub.Watch(ctx, list)
	if err != nil {
		return
	}
	defer watched.Stop()
	shown := map[string]*clusterv1beta1.MemberCluster{}
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-watched.ResultChan():
			if !open {
				return
			}
			if isVisible(shown, event) {
				c.live.notify()
			}
		}
	}
}

// isVisible is false for an update of a member that changes nothing on the pages: each member reports
// every few minutes, so with a thousand members there always is an update.
func isVisible(shown map[string]*clusterv1beta1.MemberCluster, event watch.Event) bool {
	member, ok := event.Object.(*clusterv1beta1.MemberCluster)
	if !ok {
		return true
	}
	now := withoutTimes(member)
	before := shown[member.Name]
	if shown[member.Name] = now; event.Type == watch.Deleted {
		delete(shown, member.Name)
		return true
	}
	return before == nil || !equality.Semantic.DeepEqual(before, now)
}

// withoutTimes is a copy of a member without times of heartbeats and observations, and without fields
// that no page shows.
func withoutTimes(member *clusterv1beta1.MemberCluster) *clusterv1beta1.MemberCluster {
	m := member.DeepCopy()
	m.ResourceVersion, m.ManagedFields = "", nil
	m.Status.ResourceUsage = clusterv1beta1.ResourceUsage{}
	for name, property := range m.Status.Properties {
		property.ObservationTime = metav1.Time{}
		m.Status.Properties[name] = property
	}
	for i := range m.Status.AgentStatus {
		m.Status.AgentStatus[i].LastReceivedHeartbeat = metav1.Time{}
	}
	return m
}

// followSearch notifies one page of changes in its search result, until the context ends.
func (c *Console) followSearch(ctx context.Context, s *search, changed chan<- struct{}) {
	to, params, path, err := s.request()
	if err != nil || s.Problem != "" {
		return // The page shows the error.
	}
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for ctx.Err() == nil {
		// The page shows errors of reading.
		_ = c.Hub.Changes(ctx, notify, to, params, path...)
		wait(ctx, rewatchAfter)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// events is the stream that notifies a page of changes.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	changed, leave := c.live.listen()
	defer leave()
	if q := r.URL.Query(); q.Get("kind") != "" {
		ctx, stop := context.WithCancel(r.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.followSearch(ctx, c.parseSearch(ctx, q), changed)
		}()
		defer func() { stop(); <-ended }()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for text := ": hello\n\n"; ; {
		if _, err := fmt.Fprint(w, text); err != nil || flush() != nil {
			return
		}
		timer := time.NewTimer(keepAlive)
		select {
		case <-r.Context().Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
			wait(r.Context(), debounce)
			text = "data: changed\n\n"
		case <-timer.C:
			text = ": alive\n\n"
		}
	}
}
