// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writepriority orders the gateway's writes by the urgency for those that wait for them.
//
// When many members or placements are added at once, the hub is busy with writes, and concurrent
// writes slow each other down. Without an order, Works of the first members would delay the
// registration of the last ones and the decisions about other members, and status reports would
// delay deliveries. So while more urgent writes are in flight, or were a moment ago, only a few
// less urgent ones run at a time. None ever waits indefinitely, because a few are always in flight.
package writepriority
