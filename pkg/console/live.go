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
	// gather is how long changes are gathered before pages are told: a fleet never rests.
	gather = 500 * time.Millisecond
	// watchAgain is how soon a watch that has ended is made again.
	watchAgain = 2 * time.Second
	// alive is how often an idle page hears something, so that it notices an end.
	alive = 15 * time.Second
)

// signals tell pages that something has changed; what, they ask for.
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

func (s *signals) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for listener := range s.listeners {
		select {
		case listener <- struct{}{}:
		default: // It has not yet looked at the one before.
		}
	}
}

// watch follows the kinds that pages show until the context ends: members whole, the others by
// their metadata.
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
				wait(ctx, watchAgain)
			}
		})
	}
	group.Wait()
}

// follow tells of changes until the watch ends. A kind that the user may not watch is not
// live; what keeps it from being read its page says.
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
			if isNews(shown, event) {
				c.live.tell()
			}
		}
	}
}

// isNews is false for a member of which pages show what they show already: each reports every
// few minutes, and of a thousand there is always one.
func isNews(shown map[string]*clusterv1beta1.MemberCluster, event watch.Event) bool {
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

// withoutTimes is a member without when it was heard of and looked at, and without what no
// page shows.
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

// followLook tells one page of changes of what it looks at, until the context ends.
func (c *Console) followLook(ctx context.Context, l *look, changed chan<- struct{}) {
	to, params, path, err := l.request()
	if err != nil || l.Problem != "" {
		return // The page says so.
	}
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for ctx.Err() == nil {
		// What keeps it from being read the page says.
		_ = c.Hub.Changes(ctx, tell, to, params, path...)
		wait(ctx, watchAgain)
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

// events is the stream on which a page hears that something has changed.
func (c *Console) events(w http.ResponseWriter, r *http.Request) {
	changed, leave := c.live.listen()
	defer leave()
	if q := r.URL.Query(); q.Get("kind") != "" {
		ctx, stop := context.WithCancel(r.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.followLook(ctx, c.lookOf(ctx, q), changed)
		}()
		defer func() { stop(); <-ended }()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	for text := ": hello\n\n"; ; {
		if _, err := fmt.Fprint(w, text); err != nil || flush() != nil {
			return
		}
		timer := time.NewTimer(alive)
		select {
		case <-r.Context().Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
			wait(r.Context(), gather)
			text = "data: changed\n\n"
		case <-timer.C:
			text = ": alive\n\n"
		}
	}
}
