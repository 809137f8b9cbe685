// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxReview is more than any review that an API server sends: it holds an object of
	// at most 3 MiB, the object before it, and who asks.
	maxReview = 8 << 20
	// smallReview is what nearly all reviews are smaller than.
	smallReview = 256 << 10
	// leastCharge is what a review counts at least, so that bytes bound the number too.
	leastCharge = 32 << 10
	// maxWait is how long a review waits for others to end: the API server, which waits
	// five seconds, gets an answer of ours before it gives up.
	maxWait = 4 * time.Second
)

// A budget bounds the bytes of reviews under way. What a review says that it has counts
// from before it is read until it is answered; a reader makes several times as much of
// it. Small ones have a budget of their own, so that they do not wait for large ones.
type budget struct {
	small, large *semaphore.Weighted
}

// newBudget has room for so many bytes of small reviews, and of large ones.
func newBudget(small, large int64) *budget {
	return &budget{small: semaphore.NewWeighted(small), large: semaphore.NewWeighted(large)}
}

// serve has the handler answer once there is room; 413 and 503 are for what is too
// large, and for what found no room in time.
func (b *budget) serve(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	charge, lane := max(r.ContentLength, leastCharge), b.small
	if r.ContentLength < 0 {
		charge = maxReview // It does not say how long it is.
	}
	if charge > maxReview {
		refuse(w, http.StatusRequestEntityTooLarge, "a review has at most 8 MiB")
		return
	}
	if charge > smallReview {
		lane = b.large
	}
	waiting, cancel := context.WithTimeout(r.Context(), maxWait)
	defer cancel()
	if err := lane.Acquire(waiting, charge); err != nil {
		refuse(w, http.StatusServiceUnavailable, "too many reviews are under way")
		return
	}
	defer lane.Release(charge)
	http.MaxBytesHandler(handler, maxReview).ServeHTTP(w, r)
}
