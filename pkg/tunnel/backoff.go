// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

const (
	// reconnectFloor and reconnectCeiling limit the wait before a new attempt.
	reconnectFloor   = 200 * time.Millisecond
	reconnectCeiling = 30 * time.Second
	// reconnectFirst is the upper limit of the first wait.
	reconnectFirst = time.Second
	// reconnectOfMember is how much each member of the fleet adds to that limit when all of them
	// may have lost their tunnels. One core of the gateway can do the TLS handshakes and the hub's
	// reviews of 500 agents a second, with time left for other work.
	reconnectOfMember = 2 * time.Millisecond
	// sameReplicaWaits limits the growth of the waits after the agent met a gateway that it already
	// has a session to, to 4 s. The agent has a working tunnel, so neither it nor the gateways need
	// longer waits.
	sameReplicaWaits = 3
	// sameReplicaSearches is how many of those waits are short. A gateway that is not met by then is
	// declared but cannot be reached, maybe for long.
	sameReplicaSearches = 10
	// sameReplicaOfMember is how much each member of the fleet then adds to the longest wait: a
	// tenth of the handshakes that reconnectOfMember allows.
	sameReplicaOfMember = 20 * reconnectOfMember
	// stableAfter is how long a session has to last for its loss to count as the first failure.
	stableAfter = time.Minute
)

// reconnectDelay is the wait before the next attempt after that many failures in a row (1 or more).
// It is uniformly distributed, by random in [0,1), between the floor and a limit that doubles from
// first to reconnectCeiling.
func reconnectDelay(failures int, first time.Duration, random float64) time.Duration {
	top := first << min(max(failures-1, 0), 10)
	top = min(top, reconnectCeiling)
	return reconnectFloor + time.Duration(random*float64(top-reconnectFloor))
}

// sameReplicaDelay is the wait after the agent met a gateway with an existing session, met times in
// a row.
func sameReplicaDelay(met, members int, random float64) time.Duration {
	if met <= sameReplicaSearches {
		return reconnectDelay(min(met, sameReplicaWaits), reconnectFirst, random)
	}
	longest := max(reconnectCeiling, time.Duration(members)*sameReplicaOfMember)
	return reconnectFloor + time.Duration(random*float64(longest-reconnectFloor))
}

// reconnectFirstOf is the first limit in a fleet of that many members, after a session that ended
// so. If nothing arrived from the peer, the cause is probably this agent's own network, and other agents do
// not reconnect at the same time.
func reconnectFirstOf(members int, ended error) time.Duration {
	if errors.Is(ended, native.ErrPeerSilent) {
		return reconnectFirst
	}
	all := min(time.Duration(members), reconnectCeiling/reconnectOfMember) * reconnectOfMember
	return max(reconnectFirst, all)
}
