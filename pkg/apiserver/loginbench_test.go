// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// logins measures the first request of callers whose tokens are new, before and while seven users watch
// a thousand members. With byName, the users may reach each member by its name and not all members, so
// that the gateway asks the hub about each of the 7,000 watches, at the start and again every few seconds.
func logins(b *testing.B, byName bool) {
	const (
		users, members = 7, 1000
		each           = 25 * time.Millisecond // between two logins
		before, during = 200, 1200
	)
	begun := make(chan string, 100*users*members)
	all := crowdOf(b, members, watched(nil, begun))
	g := newGateway(b, all, unbounded, asHub(reviewer(b, byName)))
	for b.Loop() {
		idle, err := g.loginsOf(b.Context(), before, each, "idle")
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		var watching sync.WaitGroup
		for n := range users {
			watching.Go(func() {
				for ctx.Err() == nil { // A watch ends if the hub does not decide about it in time.
					_ = g.withToken(ctx, fmt.Sprint("watcher-", n), "https://"+g.address+podsOfAll+"?watch=true&memberTimeoutSeconds=30")
				}
			})
		}
		busy, err := g.loginsOf(b.Context(), during, each, "busy")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(milliseconds(quantile(busy, 0.5)), "p50-ms")
		b.ReportMetric(milliseconds(quantile(busy, 0.99)), "p99-ms")
		b.ReportMetric(milliseconds(quantile(idle, 0.99)), "idle-p99-ms")
		b.ReportMetric(float64(len(begun)), "member-watches")
		cancel()
		watching.Wait()
		for len(begun) > 0 {
			<-begun
		}
	}
	b.ReportMetric(0, "ns/op")
}

// quantile sorts times.
func quantile(took []time.Duration, q float64) time.Duration {
	slices.Sort(took)
	return took[int(q*float64(len(took)-1))]
}

// loginsOf sends one request for each of so many new tokens, at equal intervals, and returns how long
// each took.
func (g *gateway) loginsOf(ctx context.Context, n int, each time.Duration, prefix string) ([]time.Duration, error) {
	took := make([]time.Duration, n)
	tick := time.NewTicker(each)
	defer tick.Stop()
	group, ctx := errgroup.WithContext(ctx)
	for i := range n {
		<-tick.C
		began := time.Now()
		group.Go(func() error {
			url := fmt.Sprintf("https://%s/clusters/m%04d/api/v1/namespaces/shop/pods", g.address, i%len(g.members))
			err := g.withToken(ctx, fmt.Sprint(prefix, "-", i), url)
			took[i] = time.Since(began)
			return err
		})
	}
	return took, group.Wait()
}

// withToken reads a whole reply as the bearer of a token.
func (g *gateway) withToken(ctx context.Context, token, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := g.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 1024))
		return fmt.Errorf("%s: %d: %s", url, res.StatusCode, text)
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// reviewer is a hub that knows every token as that of a user of the same name. With byName it allows
// each access to one member, and none to all of them.
func reviewer(b *testing.B, byName bool) *hub {
	h := newHub(b, publishedBy(newAuthority(b), newAuthority(b)))
	close(h.listed)
	mux := http.NewServeMux()
	mux.Handle("/", h.Config.Handler)
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		replyCreated(w, review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = !byName || asked != nil && asked.Name != ""
		replyCreated(w, review)
	})
	h.Config.Handler = mux
	return h
}

func replyCreated(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	reply(w, object)
}
