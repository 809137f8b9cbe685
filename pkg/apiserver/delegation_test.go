// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
)

// busyHub decides about user "waits" only, and leaves all other reviews without an answer until
// release is called.
func busyHub(t *testing.T) (config *rest.Config, stuck *atomic.Int32, release func()) {
	stuck = &atomic.Int32{}
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if review.Spec.User != "waits" {
			stuck.Add(1)
			<-released
		}
		review.Status.Allowed = true
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(release)
	config = &rest.Config{Host: server.URL}
	config.ContentType = "application/json"
	return config, stuck, release
}

func reads(caller, member string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: caller}, Verb: "get", APIGroup: "cluster.core.oam.dev", APIVersion: "v1alpha1",
		Resource: "clustergateways", Subresource: "proxy", Name: member, ResourceRequest: true,
	}
}

// Seven users with a watch of a thousand members need thousands of reviews. A caller with a new
// token must not wait behind them.
func TestDelegation_AuthorizesCallersWhileBulkReviewsWait(t *testing.T) {
	config, stuck, release := busyHub(t)
	d, err := newDelegation(config)
	if err != nil {
		t.Fatal(err)
	}
	calls, bulk, err := d.authorizers()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	for range 20 * maxBulk {
		asking.Go(func() { _, _, _ = bulk.Authorize(ctx, reads("watches", "member")) })
	}
	if decision, _, err := calls.Authorize(t.Context(), reads("waits", "member")); decision != authorizer.DecisionAllow {
		t.Errorf("the caller got %v, %v", decision, err)
	}
	// None of them ends before this.
	if n := stuck.Load(); n > maxBulk {
		t.Errorf("%d bulk reviews are in flight, want at most %d", n, maxBulk)
	}
	cancel()
	release()
	asking.Wait()
}

func TestDelegation_LimitsTimeOfReview(t *testing.T) {
	slots := make(chan struct{}, 1)
	slots <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := &bounded{slots: slots}
	if decision, _, err := b.Authorize(ctx, reads("jane", "member")); err == nil || decision != authorizer.DecisionNoOpinion {
		t.Errorf("got %v, %v", decision, err)
	}
	asked := authorizer.AuthorizerFunc(func(ctx context.Context, _ authorizer.Attributes) (authorizer.Decision, string, error) {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("the review has no deadline")
		}
		return authorizer.DecisionAllow, "", nil
	})
	if decision, _, err := (&bounded{Authorizer: asked}).Authorize(t.Context(), reads("jane", "member")); err != nil || decision != authorizer.DecisionAllow {
		t.Errorf("got %v, %v", decision, err)
	}
}
