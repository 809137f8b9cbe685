// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// reviewAge is how long the result of a SubjectAccessReview counts. It covers the two webhooks of
	// one write, and a few writes of one user in a row. API servers cache results of a webhook
	// authorizer for 30 s and longer.
	reviewAge = 5 * time.Second
	// cachedReviews limits the memory to a few megabytes.
	cachedReviews = 20_000
)

// reviewCache answers SubjectAccessReviews whose whole spec, user included, was reviewed a moment ago.
type reviewCache struct {
	client.Writer
	clock clock.PassiveClock

	mu    sync.Mutex // guards known
	known map[[sha256.Size]byte]reviewed
}

type reviewed struct {
	allowed bool
	at      time.Time
}

// Cached returns a Writer that creates SubjectAccessReviews through another, and remembers their
// results for five seconds.
func Cached(reviews client.Writer, clock clock.PassiveClock) client.Writer {
	return &reviewCache{Writer: reviews, clock: clock, known: map[[sha256.Size]byte]reviewed{}}
}

// Create fills in the status of a SubjectAccessReview.
func (c *reviewCache) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	review, ok := object.(*authorizationv1.SubjectAccessReview)
	if !ok {
		return c.Writer.Create(ctx, object, options...)
	}
	text, err := json.Marshal(review.Spec)
	if err != nil {
		return fmt.Errorf("encoding a SubjectAccessReview: %w", err)
	}
	key := sha256.Sum256(text)
	c.mu.Lock()
	before, ok := c.known[key]
	c.mu.Unlock()
	if ok && c.clock.Since(before.at) < reviewAge {
		review.Status.Allowed = before.allowed
		return nil
	}
	// The time before the request: a right that is revoked meanwhile counts no longer than promised.
	now := c.clock.Now()
	if err := c.Writer.Create(ctx, object, options...); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= cachedReviews {
		clear(c.known)
	}
	c.known[key] = reviewed{allowed: review.Status.Allowed, at: now}
	return nil
}
