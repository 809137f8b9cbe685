// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"fmt"
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
	mu       sync.Mutex // guards the following fields
	reviewed map[string]int
	denied   string
	// restarts is true while reviews fail, named while only names of members are allowed.
	restarts, named bool
}

func (h *hub) set(set func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set()
}

func (h *hub) reviewsOf(caller string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reviewed[caller]
}

func (h *hub) deny(caller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.denied = caller
}

func (h *hub) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reviewed[a.GetUser().GetName()]++
	if h.restarts {
		return authorizer.DecisionNoOpinion, "", errors.New("the hub restarts")
	}
	if a.GetUser().GetName() == h.denied || h.named && a.GetName() == "" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

// longRunningOf is a long-running request of a caller for a pod's path.
func longRunningOf(caller, path string) *exchange {
	who := &user.DefaultInfo{Name: caller}
	unreachable := newActions(MemberServerName, func(*http.Request, bool) (*http.Response, error) { return nil, errors.New("the member is unreachable") })
	return &exchange{rights: rights{caller: who, route: &route{member: "m", actions: unreachable}, authorized: []authorizer.Attributes{
		authorizer.AttributesRecord{User: who, Verb: "get", Resource: "clustergateways", Subresource: "proxy", Name: "m", ResourceRequest: true, Path: path},
	}}}
}

func TestReviews_ReviewSharedPermissionOncePerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hub{reviewed: map[string]int{}}
		r := newReviews(DefaultReviewPeriod, h)
		var janes []context.Context
		var leave []func()
		for _, path := range []string{"/a", "/b", "/c", "/d", "/e"} {
			ctx, left := r.join(t.Context(), longRunningOf("jane", path))
			janes, leave = append(janes, ctx), append(leave, left)
		}
		mary, left := r.join(t.Context(), longRunningOf("mary", "/a"))
		leave = append(leave, left)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		for _, caller := range []string{"jane", "mary"} {
			if n := h.reviewsOf(caller); n < 24 || n > 30 {
				t.Errorf("the hub reviewed %d times for %s in 10 minutes, want 24 to 30", n, caller)
			}
		}
		h.deny("jane")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, ctx := range janes {
			if !errors.Is(context.Cause(ctx), errRightLost) {
				t.Errorf("a request still runs a minute after its caller lost the permission: %v", context.Cause(ctx))
			}
		}
		if mary.Err() != nil {
			t.Errorf("a request of another user ended too: %v", context.Cause(mary))
		}
		for _, left := range leave {
			left()
		}
		if len(r.running) > 0 {
			t.Errorf("%d reviews are left without a request", len(r.running))
		}
		before := h.reviewsOf("mary")
		time.Sleep(time.Minute)
		if h.reviewsOf("mary") != before {
			t.Error("the hub still reviews a request that has ended")
		}
	})
}

// A view of a thousand members begins a thousand watches at once. Their reviews came together, again and
// again.
func TestReviews_OfRequestsThatBeginTogetherAreSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, mean = 1000, 1000 / 25
		h := &hub{reviewed: map[string]int{}}
		r := newReviews(DefaultReviewPeriod, h)
		for n := range requests {
			_, leave := r.join(t.Context(), longRunningOf(fmt.Sprint("user-", n), "/a"))
			defer leave()
		}
		total := func() (n int) {
			h.set(func() {
				for _, reviews := range h.reviewed {
					n += reviews
				}
			})
			return n
		}
		before := 0
		for second := range 3 * int(DefaultReviewPeriod.Seconds()) {
			time.Sleep(time.Second)
			synctest.Wait()
			now := total()
			if now-before > 3*mean {
				t.Errorf("%d of %d requests were reviewed in second %d", now-before, requests, second)
			}
			before = now
		}
	})
}

func TestReviews_EndRequestThatHubDoesNotDecideAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hub{reviewed: map[string]int{}}
		r := newReviews(DefaultReviewPeriod, h)
		ctx, leave := r.join(t.Context(), longRunningOf("jane", "/a"))
		defer leave()
		for range 3 {
			h.set(func() { h.restarts = true })
			time.Sleep(MaxUnreviewed - time.Minute)
			h.set(func() { h.restarts = false })
			time.Sleep(time.Minute)
		}
		if ctx.Err() != nil {
			t.Fatalf("a hub that restarts ended the request: %v", context.Cause(ctx))
		}
		h.set(func() { h.restarts = true })
		time.Sleep(MaxUnreviewed + time.Minute)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errUnreviewed) || !errors.Is(context.Cause(ctx), errRightLost) {
			t.Errorf("the request ended with %v, want %v", context.Cause(ctx), errUnreviewed)
		}
	})
}

// keys are the names that the hub reviews without a cache.
type keys struct {
	hub
	names map[string]bool
}

func (k *keys) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	k.set(func() { k.names[a.GetName()] = true })
	return k.hub.Authorize(ctx, a)
}

func TestReviews_ReviewAllMembersOfViewFirst(t *testing.T) {
	for name, c := range map[string]struct {
		named, fanned bool
		reviews       int
	}{
		"a caller of a view who may reach all members":  {fanned: true, reviews: 1},
		"a caller of a view who may reach some members": {fanned: true, named: true, reviews: 101},
		"a caller of each member":                       {reviews: 100},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keys{hub: hub{reviewed: map[string]int{}, named: c.named}, names: map[string]bool{}}
				r := newReviews(DefaultReviewPeriod, k)
				for i := range 100 {
					x := longRunningOf("jane", "/a")
					of := x.rights.authorized[0].(authorizer.AttributesRecord)
					of.Name = fmt.Sprintf("member-%d", i)
					x.rights.authorized[0], x.rights.fanned = of, c.fanned
					x.rights.route = &route{member: of.Name, actions: x.rights.route.actions}
					ctx, leave := r.join(t.Context(), x)
					defer leave()
					defer func() {
						if ctx.Err() != nil {
							t.Errorf("a request ended: %v", context.Cause(ctx))
						}
					}()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(k.names) != c.reviews {
					t.Errorf("the hub reviews %d names, want %d", len(k.names), c.reviews)
				}
			})
		})
	}
}
