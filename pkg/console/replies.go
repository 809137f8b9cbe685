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

	"fleetgate.io/fleetgate/pkg/plugin/why"
)

const (
	// askWithin bounds how long a page waits for a member.
	askWithin = 5 * time.Second
	// remembered is how many latencies of a member are kept while the console runs.
	remembered = 60
	// maxShownEvents is how many events a page has.
	maxShownEvents = 50
)

// latencies are how long members took to answer this console.
type latencies struct {
	// mu guards of.
	mu sync.Mutex
	of map[string][]time.Duration
}

// add keeps one, and returns all that are kept of the member, the newest last.
func (l *latencies) add(member string, took time.Duration) []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string][]time.Duration{}
	}
	all := append(l.of[member], took)
	l.of[member] = all[max(0, len(all)-remembered):]
	return slices.Clone(l.of[member])
}

// replies is what a member itself says, through the hub.
type replies struct {
	// Latency is a sentence; empty if the member did not answer.
	Latency string
	Events  []event
	// Problem is why it could not be asked for all of that.
	Problem string
}

// event is one of Kubernetes, as pages have it.
type event struct{ Ago, Type, Object, Reason, Message string }

// ask asks a member for how long it takes to answer, and for its warnings.
func (c *Console) ask(ctx context.Context, member string) replies {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var a replies
	took, err := c.Hub.MemberAnswers(ctx, member)
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	a.Latency = latencySentence(c.took.add(member, took))
	events, err := c.Hub.MemberEvents(ctx, member, &corev1.ObjectReference{}, true)
	if err != nil {
		a.Problem = err.Error()
	}
	a.Events = c.eventsOf(events)
	return a
}

// latencySentence sums up what was measured, the newest last.
func latencySentence(all []time.Duration) string {
	text := milliseconds(all[len(all)-1])
	if len(all) > 1 {
		text += fmt.Sprintf(" (%s to %s in the last %d times)", milliseconds(slices.Min(all)), milliseconds(slices.Max(all)), len(all))
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
			Ago: duration.HumanDuration(c.Clock.Since(why.LastSeen(e))), Type: e.Type, Object: why.RefOf(of.Kind, of.Namespace, of.Name), Reason: e.Reason, Message: e.Message,
		})
	}
	return all
}
