// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a handler that reads for as long as a server lets it.
type slow struct{ now, most atomic.Int64 }

func (s *slow) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	held := s.now.Add(r.ContentLength)
	for most := s.most.Load(); held > most && !s.most.CompareAndSwap(most, held); most = s.most.Load() {
	}
	time.Sleep(readTime)
	s.now.Add(-r.ContentLength)
}

func reviewOf(length int64) *http.Request {
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
	request.ContentLength = length
	return request
}

func TestBudget_SlowBodiesDoNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, bodies := newBudget(smallBytes, largeBytes), &slow{}
		var all sync.WaitGroup
		var refused atomic.Int64
		for range 40 {
			all.Go(func() {
				answer := httptest.NewRecorder()
				b.serve(answer, reviewOf(maxReview), bodies)
				if answer.Code == http.StatusServiceUnavailable {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		answer := httptest.NewRecorder()
		b.serve(answer, reviewOf(1000), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
		if answer.Code != http.StatusAccepted {
			t.Errorf("a small review beside them got %d", answer.Code)
		}
		all.Wait()
		if most := bodies.most.Load(); most != largeBytes {
			t.Errorf("bodies of %d bytes were in flight, want %d", most, largeBytes)
		}
		if want := int64(40 - largeBytes/maxReview); refused.Load() != want {
			t.Errorf("%d were told in time that there is no room, want %d", refused.Load(), want)
		}
		b.serve(answer, reviewOf(maxReview), bodies)
		if bodies.now.Load() != 0 {
			t.Error("what has ended still counts")
		}
	})
}

func TestBudget_LimitsNumberOfSmallBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(smallBytes, largeBytes)
		var under, most atomic.Int64
		var all sync.WaitGroup
		for range 2 * smallBytes / leastCharge {
			all.Go(func() {
				b.serve(httptest.NewRecorder(), reviewOf(1), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					most.Store(max(most.Load(), under.Add(1)))
					time.Sleep(readTime)
					under.Add(-1)
				}))
			})
		}
		all.Wait()
		if most.Load() > smallBytes/leastCharge {
			t.Errorf("%d reviews were in flight", most.Load())
		}
	})
}

func TestBudget_UnknownLengthCountsAsLargest(t *testing.T) {
	b := newBudget(smallBytes, maxReview)
	b.serve(httptest.NewRecorder(), reviewOf(-1), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if b.large.TryAcquire(1) {
			t.Error("there is room beside it")
		}
	}))
	answer := httptest.NewRecorder()
	b.serve(answer, reviewOf(maxReview+1), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was read") }))
	if answer.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("what is too large got %d", answer.Code)
	}
}
