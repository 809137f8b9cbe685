// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import "testing"

func TestLaneIsAsWideAsItIs(t *testing.T) {
	l := newLane(2)
	for range 2 {
		if !l.enter() {
			t.Fatal("it is full before it is")
		}
	}
	if l.enter() {
		t.Error("a third has entered")
	}
	l.leave()
	if !l.enter() {
		t.Error("nobody enters after one has left")
	}
	if narrow := newLane(0); !narrow.enter() {
		t.Error("a lane of no width lets nobody pass, ever")
	}
}
