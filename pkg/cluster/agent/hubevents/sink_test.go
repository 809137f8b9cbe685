// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hubevents

import (
	"context"
	"fmt"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// hub stores events by name and counts their occurrences.
type hub struct {
	events.EventSink
	kept map[string]int
}

func (h hub) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	if h.kept[event.Name] > 0 {
		return nil, apierrors.NewAlreadyExists(eventsv1.Resource("events"), event.Name)
	}
	h.kept[event.Name] = 1
	return event, nil
}

func (h hub) Patch(_ context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	if h.kept[event.Name] == 0 {
		return nil, apierrors.NewNotFound(eventsv1.Resource("events"), event.Name)
	}
	h.kept[event.Name]++
	return event, nil
}

func event(i int) *eventsv1.Event {
	return &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: fmt.Sprintf("work.%x", i)}}
}

func TestSink_DropsEventsWhenAllNamesAreInUse(t *testing.T) {
	to := hub{kept: map[string]int{}}
	s := newSink(to)
	for i := range clusterv1beta1.MaxAgentEvents {
		if _, err := s.Create(t.Context(), event(i)); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	for i := range clusterv1beta1.MaxAgentEvents {
		if name := clusterv1beta1.AgentEventName(i); to.kept[name] != 1 {
			t.Errorf("%s is there %d times", name, to.kept[name])
		}
	}
	if _, err := s.Create(t.Context(), event(-1)); !apierrors.IsAlreadyExists(err) || len(to.kept) != clusterv1beta1.MaxAgentEvents {
		t.Errorf("one too many: %v, with %d there", err, len(to.kept))
	}

	// The hub has deleted one of the next names.
	delete(to.kept, clusterv1beta1.AgentEventName((s.next+tries-1)%clusterv1beta1.MaxAgentEvents))
	if _, err := s.Create(t.Context(), event(-1)); err != nil {
		t.Errorf("with a free name: %v", err)
	}
}

func TestSink_PatchesTheSameEventWhenItRecurs(t *testing.T) {
	to := hub{kept: map[string]int{}}
	s := newSink(to)
	for i := range 3 {
		if _, err := s.Create(t.Context(), event(i)); err != nil {
			t.Fatal(err)
		}
	}
	again, err := s.Patch(t.Context(), event(1), nil)
	if err != nil || to.kept[again.Name] != 2 {
		t.Fatalf("patched: %v, %v", again, err)
	}
	delete(to.kept, again.Name)
	if _, err := s.Patch(t.Context(), event(1), nil); !apierrors.IsNotFound(err) {
		t.Errorf("one that the hub has forgotten: %v", err)
	}
	if _, err := newSink(to).Patch(t.Context(), event(2), nil); !apierrors.IsNotFound(err) {
		t.Errorf("an event from before the restart: %v", err)
	}
}
