// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memberwatch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWatcher_NotifiesWorksOnceOfAForbiddenResource(t *testing.T) {
	var told []Event
	w := New(nil, nil).For(records, func(_ context.Context, e Event) { told = append(told, e) })
	w.Follow("one", []Object{a, secret}, nil)
	w.Follow("two", []Object{a}, nil)

	w.setForbidden(t.Context(), secrets, true)
	w.setForbidden(t.Context(), secrets, true)
	if diff := cmp.Diff([]Event{{Work: "one"}}, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupVersionResource{secrets}, w.Unwatched("one")); diff != "" {
		t.Errorf("forbidden resources of Work one (-want +got):\n%s", diff)
	}
	if unwatched := w.Unwatched("two"); unwatched != nil {
		t.Errorf("forbidden resources of Work two: %v", unwatched)
	}

	w.setForbidden(t.Context(), secrets, false)
	if len(told) != 2 || w.Unwatched("one") != nil {
		t.Errorf("after the right was granted the events are %v and the forbidden resources %v", told, w.Unwatched("one"))
	}
}
