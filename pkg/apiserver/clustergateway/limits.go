// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"sync"
)

// limits limit how many requests of a kind are in flight.
type limits struct {
	// what names the requests in a message; remedy says what a caller over the limit can do.
	what, remedy       string
	perUser, perMember *counter
}

// limitsOf returns the limits for short or for long-running requests.
func (h *Handler) limitsOf(request *Request) limits {
	if request.LongRunning {
		return h.long
	}
	return h.short
}

// enter counts a request until leave is called. It fails if there are too many.
func (l limits) enter(x *exchange) (leave func(), err error) {
	member, user := x.request.Member, x.caller.GetName()
	leaveUser := func() { l.perUser.end(user) }
	if x.fanned {
		leaveUser = func() {}
	} else if !l.perUser.begin(user) {
		return nil, tooMany(member, l.tooManyOfUser())
	}
	if !l.perMember.begin(member) {
		leaveUser()
		return nil, tooMany(member, fmt.Sprintf("the gateway has %d %s for member %q in flight: %s", l.perMember.most, l.what, member, l.remedy))
	}
	return func() {
		l.perMember.end(member)
		leaveUser()
	}, nil
}

func (l limits) tooManyOfUser() string {
	return fmt.Sprintf("the gateway has %d %s of this user in flight: %s", l.perUser.most, l.what, l.remedy)
}

// counter counts what is in flight by name. It drops names whose count is zero.
type counter struct {
	most int
	// mu guards the following fields.
	mu      sync.Mutex
	present map[string]int
}

func newCounter(most int) *counter { return &counter{most: most, present: map[string]int{}} }

// begin counts one more if there is room, and reports whether there was.
func (c *counter) begin(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present[name] >= c.most {
		return false
	}
	c.present[name]++
	return true
}

// end undoes a successful begin.
func (c *counter) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present[name]--; c.present[name] <= 0 {
		delete(c.present, name)
	}
}
