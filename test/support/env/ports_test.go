// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import "testing"

func TestReservedPortsAreHandedOutOnce(t *testing.T) {
	seen := map[int]bool{}
	for range 10 {
		r, err := reservePorts(5)
		if err != nil {
			t.Fatal(err)
		}
		defer r.release()
		for _, port := range r.ports {
			if seen[port] {
				t.Errorf("port %d was handed out twice", port)
			}
			if !isFree(port) {
				t.Errorf("port %d is not free for its program", port)
			}
			seen[port] = true
		}
	}
}
