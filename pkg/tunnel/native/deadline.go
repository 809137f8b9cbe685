// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"sync"
	"time"
)

// deadline wakes waiters on a condition. The condition's lock guards it.
type deadline struct {
	expired bool
	timer   *time.Timer
	// set counts the changes: a timer that fires late belongs to an earlier one.
	set int
}

// move sets the deadline to t, none if t is zero. The caller holds waiting.L.
func (d *deadline) move(t time.Time, waiting *sync.Cond) {
	d.stop()
	d.set++
	d.expired = false
	if t.IsZero() {
		return
	}
	left := time.Until(t)
	if left <= 0 {
		d.expired = true
		waiting.Broadcast()
		return
	}
	set := d.set
	d.timer = time.AfterFunc(left, func() {
		waiting.L.Lock()
		defer waiting.L.Unlock()
		if d.set == set {
			d.expired = true
			waiting.Broadcast()
		}
	})
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
