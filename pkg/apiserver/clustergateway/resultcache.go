// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
)

// resultCache caches results of a member. Concurrent callers with the same key share one request.
type resultCache[T any] struct {
	size     int
	inFlight singleflight.Group
	// known maps hashes of keys to cached. Forgetting replaces the whole cache, so that it never receives the
	// result of an earlier request.
	known atomic.Pointer[cache.LRUExpireCache]
}

// cached is a result and the time of its request.
type cached[T any] struct {
	value T
	at    time.Time
}

func newResultCache[T any](size int) *resultCache[T] {
	c := &resultCache[T]{size: size}
	c.forget()
	return c
}

func (c *resultCache[T]) forget() { c.known.Store(cache.NewLRUExpireCache(c.size)) }

// within returns a result that is not older than age: a cached one, or that of request,
// which is cached for as long as keep returns. A caller may disconnect while others wait for the same
// result, so request continues until requestTimeout.
func (c *resultCache[T]) within(ctx context.Context, key string, age time.Duration, keep func(T) time.Duration, request func(context.Context) (T, error)) (T, error) {
	sum := sha256.Sum256([]byte(key)) // Callers choose the length of keys.
	key = string(sum[:])
	known := c.known.Load()
	if found, ok := known.Get(key); ok && time.Since(found.(cached[T]).at) < age {
		return found.(cached[T]).value, nil
	}
	result := c.inFlight.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		began := time.Now()
		value, err := request(ctx)
		if err != nil {
			return nil, err
		}
		known.Add(key, cached[T]{value: value, at: began}, keep(value))
		return value, nil
	})
	var none T
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case r := <-result:
		if r.Err != nil {
			return none, r.Err
		}
		return r.Val.(T), nil
	}
}
