// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"fmt"
	"sync"
)

// limits bound how many requests of a kind are under way.
type limits struct {
	// what the requests are, in a message; remedy is what who has too many can do.
	what, remedy       string
	perUser, perMember *counter
}

// limitsOf are those for requests that are short, or for those that last.
func (h *Handler) limitsOf(request *Request) limits {
	if request.LongRunning {
		return h.long
	}
	return h.short
}

// enter counts a request until the function that it returns is called, or says that there
// are too many.
func (l limits) enter(x *exchange) (leave func(), err error) {
	member := x.request.Member
	leaveUser := func() { l.perUser.end(x.caller) }
	if x.fanned {
		leaveUser = func() {}
	} else if !l.perUser.begin(x.caller) {
		return nil, tooMany(member, l.tooManyOfUser())
	}
	if !l.perMember.begin(member) {
		leaveUser()
		return nil, tooMany(member, fmt.Sprintf("the gateway has %d %s for member %q under way: %s", l.perMember.most, l.what, member, l.remedy))
	}
	return func() {
		l.perMember.end(member)
		leaveUser()
	}, nil
}

func (l limits) tooManyOfUser() string {
	return fmt.Sprintf("the gateway has %d %s of this user under way: %s", l.perUser.most, l.what, l.remedy)
}

// counter knows how many of something are under way for each name. Names without
// any are forgotten.
type counter struct {
	most int
	// mu guards the rest.
	mu      sync.Mutex
	present map[string]int
}

func newCounter(most int) *counter { return &counter{most: most, present: map[string]int{}} }

// begin reports whether there is room for one more, and counts it then.
func (c *counter) begin(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present[name] >= c.most {
		return false
	}
	c.present[name]++
	return true
}

// end takes one back that begin counted.
func (c *counter) end(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.present[name]--; c.present[name] <= 0 {
		delete(c.present, name)
	}
}
