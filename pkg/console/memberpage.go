// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"fleetgate.io/fleetgate/pkg/inspect/explain"
)

const (
	// memberTimeout limits how long a page waits for a member.
	memberTimeout = 5 * time.Second
	// maxLatencies limits the response times that are kept of a member.
	maxLatencies = 60
	// maxShownEvents limits the events of a page.
	maxShownEvents = 50
)

// latencies are the response times of members that this console has measured.
type latencies struct {
	// mu guards of.
	mu sync.Mutex
	of map[string][]time.Duration
}

// add records a response time, and returns all of the member, the newest last.
func (l *latencies) add(member string, took time.Duration) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string][]time.Duration{}
	}
	all := append(l.of[member], took)
	l.of[member] = all[max(0, len(all)-maxLatencies):]
	return slices.Clone(l.of[member])
}

// liveState is read from a member, through the hub.
type liveState struct {
	// Latency describes the response times; empty if the member did not respond.
	Latency string
	Events  []event
	// Problem is why some of it could not be read.
	Problem string
}

// event is a Kubernetes event as pages show it.
type event struct{ Ago, Type, Object, Reason, Message string }

// readMember measures the response time of a member, and reads its warning events.
func (c *Console) readMember(ctx context.Context, member string) liveState {
	ctx, cancel := context.WithTimeout(ctx, memberTimeout)
	defer cancel()
	var state liveState
	took, err := c.Hub.MemberLatency(ctx, member)
	if err != nil {
		state.Problem = err.Error()
		return state
	}
	state.Latency = latencyText(c.took.add(member, took))
	events, err := c.Hub.MemberEvents(ctx, member, &corev1.ObjectReference{}, true)
	if err != nil {
		state.Problem = err.Error()
	}
	state.Events = c.eventsOf(events)
	return state
}

// latencyText summarizes response times, the newest last.
func latencyText(all []time.Duration) string {
	text := milliseconds(all[len(all)-1])
	if len(all) > 1 {
		text += fmt.Sprintf(" (%s to %s in the last %d requests)", milliseconds(slices.Min(all)), milliseconds(slices.Max(all)), len(all))
	}
	return text
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%d ms", max(1, d.Milliseconds())) }

func (c *Console) eventsOf(found []corev1.Event) []event {
	var all []event
	for i := range found[:min(len(found), maxShownEvents)] {
		e := &found[i]
		of := e.InvolvedObject
		all = append(all, event{
			Ago: duration.HumanDuration(c.Clock.Since(explain.LastSeen(e))), Type: e.Type, Object: explain.RefOf(of.Kind, of.Namespace, of.Name), Reason: e.Reason, Message: e.Message,
		})
	}
	return all
}
