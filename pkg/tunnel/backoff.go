// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import "time"

const (
	// reconnectFloor and reconnectCeiling bound the wait before a new attempt.
	reconnectFloor   = 200 * time.Millisecond
	reconnectCeiling = 30 * time.Second
	// reconnectFirst is the upper end of the first wait: wide enough that a thousand
	// agents whose gateway has restarted do not come in one burst.
	reconnectFirst = time.Second
	// sameReplicaWaits is after how many meetings of a gateway that is known already the
	// waits stop to grow, at a top of 4 s: others wait for it as little as they do.
	sameReplicaWaits = 3
	// stableAfter is how long a session has to last for its loss to count as the
	// first failure.
	stableAfter = time.Minute
)

// reconnectDelay is the wait before the next attempt after that many failures in a
// row (1 or more): anywhere, as random in [0,1) has it, between the floor and a top
// that doubles from reconnectFirst to reconnectCeiling.
func reconnectDelay(failures int, random float64) time.Duration {
	top := reconnectFirst << min(max(failures-1, 0), 10)
	top = min(top, reconnectCeiling)
	return reconnectFloor + time.Duration(random*float64(top-reconnectFloor))
}
