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
	// maxReview is more than any review of an API server: it holds an object of at most 3 MiB, the
	// old object, and the user.
	maxReview = 8 << 20
	// smallReview is the size below which nearly all reviews are.
	smallReview = 256 << 10
	// leastCharge is the minimum charge of a review, so that the limit in bytes limits the number
	// too.
	leastCharge = 32 << 10
	// maxWait is how long a review waits for others to end. The API server waits five seconds, so
	// it gets an answer before it gives up.
	maxWait = 4 * time.Second
)

// A budget limits the bytes of reviews in flight. The declared size of a review is charged from
// before it is read until it is answered. Decoding takes several times as much. Small reviews have
// a budget of their own, so that they do not wait for large ones.
type budget struct {
	small, large *semaphore.Weighted
}

// newBudget returns a budget of that many bytes for small reviews, and for large ones.
func newBudget(small, large int64) *budget {
	return &budget{small: semaphore.NewWeighted(small), large: semaphore.NewWeighted(large)}
}

// serve calls the handler once there is room. It answers 413 if the review is too large, and 503 if
// there was no room in time.
func (b *budget) serve(w http.ResponseWriter, r *http.Request, handler http.Handler) {
	charge, lane := max(r.ContentLength, leastCharge), b.small
	if r.ContentLength < 0 {
		charge = maxReview // The length is unknown.
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
		refuse(w, http.StatusServiceUnavailable, "too many reviews are in flight")
		return
	}
	defer lane.Release(charge)
	http.MaxBytesHandler(handler, maxReview).ServeHTTP(w, r)
}
