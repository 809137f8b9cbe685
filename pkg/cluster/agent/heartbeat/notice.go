// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// notice triggers reports after changes on the member. It collects changes and limits the rate,
// because each report is a write on the hub.
type notice struct {
	clock   clock.WithDelayedExecution
	changed wakes
	// settle is how long changes are collected; pause is the minimum interval between two reports.
	settle, pause time.Duration

	// mu guards the fields below it.
	mu sync.Mutex
	// due is set while a report is scheduled.
	due bool
	// reported is when the last report was triggered.
	reported time.Time
}

func newNotice(clock clock.WithDelayedExecution, settle, pause time.Duration) *notice {
	return &notice{clock: clock, changed: make(wakes, 1), settle: settle, pause: pause}
}

// follow watches objects until ctx ends. It restarts a watch that ended or failed after a delay.
func (n *notice) follow(ctx context.Context, objects metadata.Getter, retry time.Duration) {
	for {
		n.watch(ctx, objects)
		select {
		case <-ctx.Done():
			return
		case <-n.clock.After(retry):
		}
	}
}

func (n *notice) watch(ctx context.Context, objects metadata.Getter) {
	events, err := objects.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events.ResultChan():
			if !ok || e.Type == watch.Error {
				return
			}
			n.note()
		}
	}
}

// note schedules a report.
func (n *notice) note() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due {
		return
	}
	n.due = true
	n.clock.AfterFunc(max(n.settle, n.pause-n.clock.Since(n.reported)), n.report)
}

func (n *notice) report() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.due, n.reported = false, n.clock.Now()
	n.changed.wake()
}

// wakes triggers early reports. It has capacity one: the pending report includes all changes.
type wakes chan event.TypedGenericEvent[struct{}]

func (w wakes) wake() {
	select {
	case w <- event.TypedGenericEvent[struct{}]{}:
	default: // a report is pending already
	}
}

// source triggers reports for the member of that InternalMemberCluster.
func (w wakes) source(internal client.ObjectKey) source.Source {
	toMember := func(context.Context, struct{}) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: internal}}
	}
	return source.Channel((chan event.TypedGenericEvent[struct{}])(w), handler.TypedEnqueueRequestsFromMapFunc(toMember))
}
