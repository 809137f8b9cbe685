// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type firstOnly struct {
	client.Writer
	reviews int
}

func (f *firstOnly) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	f.reviews++
	object.(*authorizationv1.SubjectAccessReview).Status.Allowed = f.reviews == 1
	return nil
}

func TestCached_SharesReviewsOfTheSameUserForSeconds(t *testing.T) {
	hub, clock := &firstOnly{}, testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0))
	cached := Cached(hub, clock)
	ask := func(change func(*authenticationv1.UserInfo, *Access)) bool {
		user, access := authenticationv1.UserInfo{Username: "u", UID: "1", Groups: []string{"g"}}, Access{Verb: "get", Resource: "secrets", Namespace: "a"}
		change(&user, &access)
		may, err := NewChecker(user, cached).May(t.Context(), Question{Any: []Access{access}})
		return err == nil && may[0]
	}
	same := func(*authenticationv1.UserInfo, *Access) {}
	for range 2 {
		if !ask(same) || hub.reviews != 1 {
			t.Errorf("%d reviews of the same user and access", hub.reviews)
		}
	}
	for name, change := range map[string]func(*authenticationv1.UserInfo, *Access){
		"name":   func(u *authenticationv1.UserInfo, _ *Access) { u.Username = "v" },
		"uid":    func(u *authenticationv1.UserInfo, _ *Access) { u.UID = "2" },
		"groups": func(u *authenticationv1.UserInfo, _ *Access) { u.Groups = nil },
		"extra": func(u *authenticationv1.UserInfo, _ *Access) {
			u.Extra = map[string]authenticationv1.ExtraValue{"a": {"b"}}
		},
		"verb":      func(_ *authenticationv1.UserInfo, a *Access) { a.Verb = "list" },
		"namespace": func(_ *authenticationv1.UserInfo, a *Access) { a.Namespace = "b" },
	} {
		if ask(change) {
			t.Errorf("a review with another %s got the result of the first", name)
		}
	}
	clock.SetTime(clock.Now().Add(reviewAge))
	if ask(same) {
		t.Errorf("a revoked right counts after %s", reviewAge)
	}
	if known := cached.(*reviewCache).known; len(known) != 7 {
		t.Errorf("%d results are cached", len(known))
	}
}
