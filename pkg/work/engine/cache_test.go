// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

func TestObjects_DelayCorrectionsAndForgetAfterAQuietPeriod(t *testing.T) {
	now := early.Time
	var p backoff
	var waits []time.Duration
	for range 14 {
		wait := p.wait(now)
		waits = append(waits, wait)
		now = now.Add(wait)
		p = p.corrected(now)
	}
	want := []time.Duration{0, 0, 0,
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
		64 * time.Second, 128 * time.Second, 256 * time.Second, 300 * time.Second, 300 * time.Second}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if wait := p.wait(now.Add(contestLength + time.Second)); wait > 0 {
		t.Errorf("after a quiet period a correction waits %s", wait)
	}
}

func TestMemory(t *testing.T) {
	const resync = 5 * time.Minute
	now := early.Time
	it := itemOf("a")
	it.hash = "1"
	left := done("a", availability.Available)
	changed := it
	changed.hash = "2"

	prepared := func() *objects {
		m := &newCaches().of("work").objects
		m.begin([]Item{it}, "terms", now, resync)
		m.store(it, "100", left, nil, now)
		return m
	}
	asLeft := map[string]memberwatch.Observation{
		"is as it was left":                   {Version: "100", Reached: "120"},
		"the watch has not seen yet":          {Reached: "99"},
		"the watch saw before our last write": {Version: "90", Reached: "99"},
	}
	for name, observed := range asLeft {
		t.Run("an object that "+name+" is not looked at", func(t *testing.T) {
			m := prepared()
			m.begin([]Item{it}, "terms", now.Add(time.Second), resync)
			if out, ok := m.unchanged(it, observed, now.Add(time.Second)); !ok || out.Availability != left.Availability {
				t.Errorf("it is looked at: %+v", out)
			}
		})
	}
	same := memberwatch.Observation{Version: "100", Reached: "120"}
	forgotten := map[string]func(*objects) (Item, memberwatch.Observation){
		"an object that changed": func(*objects) (Item, memberwatch.Observation) {
			return it, memberwatch.Observation{Version: "101", Reached: "101"}
		},
		"a deleted object": func(*objects) (Item, memberwatch.Observation) { return it, memberwatch.Observation{Reached: "101"} },
		"an object that changed during the reconcile": func(*objects) (Item, memberwatch.Observation) {
			return it, memberwatch.Observation{Version: "101", Reached: "99"}
		},
		"an object with an older version in the watch": func(*objects) (Item, memberwatch.Observation) {
			return it, memberwatch.Observation{Version: "90", Reached: "101"}
		},
		"an object without a watch": func(*objects) (Item, memberwatch.Observation) { return it, memberwatch.Observation{} },
		"a manifest that changed":   func(*objects) (Item, memberwatch.Observation) { return changed, same },
		"another Under": func(m *objects) (Item, memberwatch.Observation) {
			m.begin([]Item{it}, "another Under", now, resync)
			return it, same
		},
		"a resync": func(m *objects) (Item, memberwatch.Observation) {
			m.begin([]Item{it}, "terms", now.Add(resync), resync)
			return it, same
		},
		"a manifest that was removed and added again": func(m *objects) (Item, memberwatch.Observation) {
			m.begin(nil, "terms", now, resync)
			m.begin([]Item{it}, "terms", now, resync)
			return it, same
		},
	}
	for name, change := range forgotten {
		t.Run(name+" is looked at", func(t *testing.T) {
			m := prepared()
			looked, observed := change(m)
			if _, ok := m.unchanged(looked, observed, now); ok {
				t.Error("it is taken for unchanged")
			}
		})
	}
	t.Run("an event of our own write is expected", func(t *testing.T) {
		e := &Engine{caches: newCaches()}
		e.caches.of("work").objects.store(it, "100", left, nil, now)
		for name, tc := range map[string]struct {
			event memberwatch.Event
			want  bool
		}{
			"our write":                {memberwatch.Event{Work: "work", Object: it.target(), Version: "100"}, true},
			"another's":                {memberwatch.Event{Work: "work", Object: it.target(), Version: "101"}, false},
			"of another object":        {memberwatch.Event{Work: "work", Object: itemOf("b").target(), Version: "100"}, false},
			"a deletion":               {memberwatch.Event{Work: "work", Object: it.target()}, false},
			"a new kind":               {memberwatch.Event{Work: "work", Object: it.target(), Version: "100", NewKind: true}, false},
			"for another Work":         {memberwatch.Event{Work: "other", Object: it.target(), Version: "100"}, false},
			"of nothing in particular": {memberwatch.Event{Work: "work"}, false},
		} {
			if e.Expects(tc.event) != tc.want {
				t.Errorf("%s is expected: %t", name, !tc.want)
			}
		}
	})
	t.Run("a lagging watch is trusted for a limited time", func(t *testing.T) {
		m := prepared()
		if _, ok := m.unchanged(it, memberwatch.Observation{Reached: "99"}, now.Add(time.Minute)); ok {
			t.Error("it is taken for unchanged")
		}
	})
	t.Run("only corrections of the same manifest have to wait", func(t *testing.T) {
		m := prepared()
		for range freeCorrections {
			m.store(it, "101", left, &Contest{Manager: "other"}, now)
		}
		if against, endsIn := m.contest(it, now); against == nil || against.Manager != "other" || endsIn != contestLength {
			t.Errorf("it is contested by %v for %s", against, endsIn)
		}
		if against, _ := m.contest(it, now.Add(contestLength)); against != nil {
			t.Error("it is contested after a quiet while")
		}
		if m.wait(it, now) <= 0 {
			t.Error("a correction after many does not wait")
		}
		if m.wait(changed, now) > 0 {
			t.Error("a changed manifest waits")
		}
		m.store(changed, "102", left, &Contest{}, now)
		if m.wait(changed, now) > 0 {
			t.Error("corrections of the previous manifest are counted")
		}
	})
}
