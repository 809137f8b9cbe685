// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// hub counts reviews by user.
type hub struct {
	mu     sync.Mutex // guards the following fields
	asked  map[string]int
	denied string
}

func (h *hub) askedAbout(caller string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked[caller]
}

func (h *hub) deny(caller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denied = caller
}

func (h *hub) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked[a.GetUser().GetName()]++
	if a.GetUser().GetName() == h.denied {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

// lastingOf is a long-running request of a caller for a pod's path.
func lastingOf(caller, path string) *exchange {
	who := &user.DefaultInfo{Name: caller}
	silent := newActions(MemberServerName, func(*http.Request, bool) (*http.Response, error) { return nil, errors.New("the member is away") })
	return &exchange{rights: rights{caller: who, route: &route{member: "m", actions: silent}, asked: []authorizer.Attributes{
		authorizer.AttributesRecord{User: who, Verb: "get", Resource: "clustergateways", Subresource: "proxy", Name: "m", ResourceRequest: true, Path: path},
	}}}
}

func TestReviews_ReviewSharedPermissionOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hub{asked: map[string]int{}}
		r := &reviews{period: DefaultReviewPeriod, authorizer: h, running: map[string]*review{}}
		var janes []context.Context
		var leave []func()
		for _, path := range []string{"/a", "/b", "/c", "/d", "/e"} {
			ctx, left := r.join(t.Context(), lastingOf("jane", path))
			janes, leave = append(janes, ctx), append(leave, left)
		}
		mary, left := r.join(t.Context(), lastingOf("mary", "/a"))
		leave = append(leave, left)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, caller := range []string{"jane", "mary"} {
			if n := h.askedAbout(caller); n < 24 || n > 30 {
				t.Errorf("the hub was asked %d times about %s in 10 minutes, want 24 to 30", n, caller)
			}
		}
		h.deny("jane")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, ctx := range janes {
			if !errors.Is(context.Cause(ctx), errRightLost) {
				t.Errorf("a request goes on a minute after the right to it was lost: %v", context.Cause(ctx))
			}
		}
		if mary.Err() != nil {
			t.Errorf("a request of somebody else ended too: %v", context.Cause(mary))
		}
		for _, left := range leave {
			left()
		}
		if len(r.running) > 0 {
			t.Errorf("%d reviews go on without a request", len(r.running))
		}
		before := h.askedAbout("mary")
		time.Sleep(time.Minute)
		if h.askedAbout("mary") != before {
			t.Error("the hub is asked about a request that has ended")
		}
	})
}
