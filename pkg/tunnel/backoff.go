// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

const (
	// reconnectFloor and reconnectCeiling bound the wait before a new attempt.
	reconnectFloor   = 200 * time.Millisecond
	reconnectCeiling = 30 * time.Second
	// reconnectFirst is the upper end of the first wait.
	reconnectFirst = time.Second
	// reconnectOfMember is by how much each member of the fleet puts it off where all of them
	// may have lost their tunnels: 500 agents a second are what a core of the gateway can
	// shake hands with and have the hub review, with time left for others.
	reconnectOfMember = 2 * time.Millisecond
	// sameReplicaWaits is after how many meetings of a gateway that is known already the
	// waits stop to grow, at a top of 4 s: others wait for it as little as they do.
	sameReplicaWaits = 3
	// stableAfter is how long a session has to last for its loss to count as the
	// first failure.
	stableAfter = time.Minute
)

// reconnectDelay is the wait before the next attempt after that many failures in a
// row (1 or more): anywhere, as random in [0,1) has it, between the floor and a top
// that doubles from first to reconnectCeiling.
func reconnectDelay(failures int, first time.Duration, random float64) time.Duration {
	top := first << min(max(failures-1, 0), 10)
	top = min(top, reconnectCeiling)
	return reconnectFloor + time.Duration(random*float64(top-reconnectFloor))
}

// reconnectFirstOf is the first of these tops in a fleet of so many members, after a session that
// ended so. A peer that fell silent is mostly this agent's own network, and nobody else's.
func reconnectFirstOf(members int, ended error) time.Duration {
	if errors.Is(ended, native.ErrPeerSilent) {
		return reconnectFirst
	}
	all := min(time.Duration(members), reconnectCeiling/reconnectOfMember) * reconnectOfMember
	return max(reconnectFirst, all)
}
