// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fleetgate.io/fleetgate/pkg/work/apply/availability"
)

func TestPaceOfAWar(t *testing.T) {
	now := early.Time
	var p pace
	var waits []time.Duration
	for range 14 {
		wait := p.wait(now)
		waits = append(waits, wait)
		now = now.Add(wait)
		p = p.repaired(now)
	}
	want := []time.Duration{0, 0, 0,
		time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
		64 * time.Second, 128 * time.Second, 256 * time.Second, 300 * time.Second, 300 * time.Second}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	if wait := p.wait(now.Add(quietUntilPast + time.Second)); wait > 0 {
		t.Errorf("after a quiet while a repair waits %s", wait)
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

	prepared := func() *workMemory {
		m := newMemory().of("work")
		m.begin([]item{it}, "terms", now, resync)
		m.settle(it, "100", left, nil, now)
		return m
	}
	t.Run("an object that is as it was left is not looked at", func(t *testing.T) {
		m := prepared()
		m.begin([]item{it}, "terms", now.Add(time.Minute), resync)
		if out, ok := m.unchanged(it, "100"); !ok || out.verdict != left.verdict {
			t.Errorf("it is looked at: %+v", out)
		}
	})
	forgotten := map[string]func(*workMemory) (item, string){
		"an object that changed":    func(*workMemory) (item, string) { return it, "101" },
		"an object nobody has seen": func(*workMemory) (item, string) { return it, "" },
		"a manifest that changed":   func(*workMemory) (item, string) { return changed, "100" },
		"other terms": func(m *workMemory) (item, string) {
			m.begin([]item{it}, "other terms", now, resync)
			return it, "100"
		},
		"a resync": func(m *workMemory) (item, string) {
			m.begin([]item{it}, "terms", now.Add(resync), resync)
			return it, "100"
		},
		"a manifest that left and came back": func(m *workMemory) (item, string) {
			m.begin(nil, "terms", now, resync)
			m.begin([]item{it}, "terms", now, resync)
			return it, "100"
		},
	}
	for name, change := range forgotten {
		t.Run(name+" is looked at", func(t *testing.T) {
			m := prepared()
			looked, version := change(m)
			if _, ok := m.unchanged(looked, version); ok {
				t.Error("it is taken for unchanged")
			}
		})
	}
	t.Run("a Work from a cache that has not seen our write is behind", func(t *testing.T) {
		m := prepared()
		if m.isBehind("9", now) {
			t.Error("it is behind before anything was written")
		}
		m.wrote("10", now)
		for version, want := range map[string]bool{"9": true, "10": false, "11": false, "unknown": false} {
			if m.isBehind(version, now.Add(time.Second)) != want {
				t.Errorf("resourceVersion %s is behind 10: %t", version, !want)
			}
		}
		if m.isBehind("9", now.Add(time.Minute)) {
			t.Error("it is behind for ever")
		}
	})
	t.Run("only repairs of the same manifest have to wait", func(t *testing.T) {
		m := prepared()
		for range freeRepairs {
			m.settle(it, "101", left, &contest{manager: "other"}, now)
		}
		if against, quietIn := m.contest(it, now); against == nil || against.manager != "other" || quietIn != quietUntilPast {
			t.Errorf("it is contested by %v for %s", against, quietIn)
		}
		if against, _ := m.contest(it, now.Add(quietUntilPast)); against != nil {
			t.Error("it is contested after a quiet while")
		}
		if m.wait(it, now) <= 0 {
			t.Error("a repair after many does not wait")
		}
		if m.wait(changed, now) > 0 {
			t.Error("a changed manifest waits")
		}
		m.settle(changed, "102", left, &contest{}, now)
		if m.wait(changed, now) > 0 {
			t.Error("repairs of the manifest before are counted")
		}
	})
}
