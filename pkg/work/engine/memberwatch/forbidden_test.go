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
	w := New(nil).For(records, func(_ context.Context, e Event) { told = append(told, e) })
	w.Follow("one", []Object{a, secret}, nil)
	w.Follow("two", []Object{a}, nil)

	w.setForbidden(t.Context(), secrets, true)
	w.setForbidden(t.Context(), secrets, true)
	if diff := cmp.Diff([]Event{{Work: "one"}}, told); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]schema.GroupVersionResource{secrets}, w.Blind("one")); diff != "" {
		t.Errorf("forbidden resources of Work one (-want +got):\n%s", diff)
	}
	if blind := w.Blind("two"); blind != nil {
		t.Errorf("forbidden resources of Work two: %v", blind)
	}

	w.setForbidden(t.Context(), secrets, false)
	if len(told) != 2 || w.Blind("one") != nil {
		t.Errorf("after the right was granted the events are %v and the forbidden resources %v", told, w.Blind("one"))
	}
}
