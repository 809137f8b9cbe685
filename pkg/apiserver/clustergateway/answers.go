// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
)

// answers caches a member's answers. It asks the same question only once at a time.
type answers[T any] struct {
	size   int
	asking singleflight.Group
	// known maps questions to answered. Forgetting replaces the whole cache, so that it never
	// receives an answer to an earlier question.
	known atomic.Pointer[cache.LRUExpireCache]
}

// answered is an answer and the time of its question.
type answered[T any] struct {
	value T
	at    time.Time
}

func newAnswers[T any](size int) *answers[T] {
	a := &answers[T]{size: size}
	a.forget()
	return a
}

func (a *answers[T]) forget() { a.known.Store(cache.NewLRUExpireCache(a.size)) }

// within returns an answer that is not older than age: a cached one, or the result of ask, which is
// cached for as long as keep says. A caller may leave while others wait for the same answer, so ask
// continues until askTimeout.
func (a *answers[T]) within(ctx context.Context, question string, age time.Duration, keep func(T) time.Duration, ask func(context.Context) (T, error)) (T, error) {
	known := a.known.Load()
	if found, ok := known.Get(question); ok && time.Since(found.(answered[T]).at) < age {
		return found.(answered[T]).value, nil
	}
	result := a.asking.DoChan(question, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
		defer cancel()
		asked := time.Now()
		value, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		known.Add(question, answered[T]{value: value, at: asked}, keep(value))
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
