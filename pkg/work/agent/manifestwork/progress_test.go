// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

func workAt(generation int64, version string) *workv1.ManifestWork {
	return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "w", Generation: generation, ResourceVersion: version}}
}

func TestProgress_LimitsReconcilesOfAnUnchangedWorkToOnePerSecond(t *testing.T) {
	p, now := newProgress(), early.Time
	if wait := p.begin(workAt(1, "10"), now); wait != 0 {
		t.Errorf("the first look waits %s", wait)
	}
	if wait := p.begin(workAt(1, "10"), now.Add(time.Millisecond)); wait != 0 {
		t.Errorf("a look after one that failed waits %s", wait)
	}
	p.end(workAt(1, "10"))
	if wait := p.begin(workAt(1, "10"), now.Add(301*time.Millisecond)); wait != 700*time.Millisecond {
		t.Errorf("the next look waits %s", wait)
	}
	if wait := p.begin(workAt(2, "11"), now.Add(400*time.Millisecond)); wait != 0 {
		t.Errorf("a look at a change waits %s", wait)
	}
	p.end(workAt(2, "11"))
	deleted := workAt(2, "12")
	deleted.DeletionTimestamp = &early
	if wait := p.begin(deleted, now.Add(500*time.Millisecond)); wait != 0 {
		t.Errorf("a deletion waits %s", wait)
	}
}

func TestProgress_DoesNotDelayAReconcileForAnotherObject(t *testing.T) {
	p, now := newProgress(), early.Time
	a, b := memberwatch.Object{Name: "a"}, memberwatch.Object{Name: "b"}
	look := func(after time.Duration) time.Duration {
		t.Helper()
		wait := p.begin(workAt(1, "10"), now.Add(after))
		if wait == 0 {
			p.end(workAt(1, "10"))
		}
		return wait
	}
	p.touch("w", a)
	if wait := look(0); wait != 0 {
		t.Errorf("the first look waits %s", wait)
	}
	p.touch("w", a)
	if wait := look(100 * time.Millisecond); wait != 900*time.Millisecond {
		t.Errorf("another look for the same object waits %s", wait)
	}
	p.touch("w", b)
	if wait := look(30 * time.Millisecond); wait != 20*time.Millisecond {
		t.Errorf("a look for another object waits %s at once", wait)
	}
	if wait := look(100 * time.Millisecond); wait != 0 {
		t.Errorf("a look for another object waits %s", wait)
	}
	p.touch("w", a)
	if wait := look(999 * time.Millisecond); wait != 101*time.Millisecond {
		t.Errorf("the object that was looked at beside the other waits %s", wait)
	}
	if wait := look(1100 * time.Millisecond); wait != 0 {
		t.Errorf("a second later it waits %s", wait)
	}
}

func TestProgress_WaitsForTheCacheAfterOwnWrites(t *testing.T) {
	p, now := newProgress(), early.Time
	p.wrote(workAt(1, "20"), now)
	if wait := p.begin(workAt(1, "19"), now.Add(time.Second)); wait != engine.CacheDelay {
		t.Errorf("it waits %s", wait)
	}
	if wait := p.begin(workAt(1, "20"), now.Add(time.Second)); wait != 0 {
		t.Errorf("our write waits %s", wait)
	}
	if wait := p.begin(workAt(1, "3"), now.Add(time.Hour)); wait != 0 {
		t.Errorf("on a hub with lower versions it waits %s", wait)
	}
}

func TestProgress_ForgetsBackoffWhenTheSpecChanges(t *testing.T) {
	p := newProgress()
	p.begin(workAt(1, "1"), early.Time)
	for range 5 {
		p.retries.When("w")
	}
	p.begin(workAt(2, "2"), later.Time)
	if wait := p.retries.When("w"); wait != engine.FirstRetry {
		t.Errorf("the first retry of the change waits %s", wait)
	}
	p.forget("w")
	if !p.isNew(workAt(2, "2")) {
		t.Error("it is remembered")
	}
}
