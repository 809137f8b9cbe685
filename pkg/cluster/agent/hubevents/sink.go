// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hubevents

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// tries is the number of names tried for an event: an agent of an earlier version, or this agent
// before a restart, may use some.
const tries = 8

// sink writes events under the names that the hub accepts. Recorders keep using their own names for
// events.
type sink struct {
	events.EventSink

	// mu guards the following fields.
	mu sync.Mutex
	// next is the number to try next.
	next int
	// given maps numbers to the recorders' names of events.
	given [clusterv1beta1.MaxAgentEvents]string
}

func newSink(to events.EventSink) *sink {
	return &sink{EventSink: to, next: rand.N(clusterv1beta1.MaxAgentEvents)}
}

// Create writes an event under a free name. If it finds none, it returns AlreadyExists, and the
// recorder drops the event.
func (s *sink) Create(ctx context.Context, event *eventsv1.Event) (created *eventsv1.Event, err error) {
	for range tries {
		number := s.number()
		created, err = s.EventSink.Create(ctx, named(event, number))
		if err == nil {
			s.note(number, event.Name)
		}
		if !apierrors.IsAlreadyExists(err) {
			return created, err
		}
	}
	return nil, err
}

// Patch updates an event that occurred again. If the event has no name any more, it returns
// NotFound, and the recorder re-creates the event.
func (s *sink) Patch(ctx context.Context, event *eventsv1.Event, patch []byte) (*eventsv1.Event, error) {
	number := s.numberOf(event.Name)
	if number < 0 {
		return nil, apierrors.NewNotFound(eventsv1.Resource("events"), event.Name)
	}
	return s.EventSink.Patch(ctx, named(event, number), patch)
}

func named(event *eventsv1.Event, number int) *eventsv1.Event {
	copied := event.DeepCopy()
	copied.Name = clusterv1beta1.AgentEventName(number)
	return copied
}

func (s *sink) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	number := s.next
	s.next = (number + 1) % clusterv1beta1.MaxAgentEvents
	return number
}

func (s *sink) note(number int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.given[number] = name
}

func (s *sink) numberOf(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(s.given[:], name)
}
