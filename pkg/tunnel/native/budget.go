// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package native

import "fleetgate.io/fleetgate/pkg/tunnel/budget"

// sessionBudget limits the unread data of all streams of a session.
const sessionBudget = 64 << 20

// budgets count a stream's unread bytes.
type budgets struct{ session, process *budget.Budget }

func (b budgets) take(n int) (within bool) {
	within = b.session.Add(n)
	if b.process != nil && !b.process.Add(n) {
		return false
	}
	return within
}

func (b budgets) give(n int) { b.take(-n) }

func (b budgets) relaxed() bool {
	return b.session.Relaxed() && (b.process == nil || b.process.Relaxed())
}
