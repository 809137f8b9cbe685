// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"sync"
	"time"
)

// deadline is the deadline of one direction of a connection: a channel that is closed once it has
// passed.
type deadline struct {
	// mu guards the following fields.
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{}
}

// done returns a channel that is closed when the current deadline has passed.
func (d *deadline) done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.channel()
}

func (d *deadline) channel() chan struct{} {
	if d.passed == nil {
		d.passed = make(chan struct{})
	}
	return d.passed
}

// set moves the deadline; the zero time removes it. A deadline in the past, or one that passes,
// wakes current waiters.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.channel() // the timer is closing it
	}
	d.timer = nil
	passed := isClosed(d.channel())
	if t.IsZero() {
		if passed {
			d.passed = make(chan struct{})
		}
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		if !passed {
			close(d.passed)
		}
		return
	}
	if passed {
		d.passed = make(chan struct{})
	}
	current := d.passed
	d.timer = time.AfterFunc(wait, func() { close(current) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
