// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// patience is how long a request waits for the first word of a reply until the member's agent
// is asked whether it lives. Who lives answers that at once, however long the reply takes.
const patience = 500 * time.Millisecond

// askedAgain is how long after an answer the agent is asked again while the reply has not begun.
const askedAgain = 5 * time.Second

// vigil gives requests up whose member's agent stands still, which its tunnel takes half a
// minute to find out by itself.
type vigil struct {
	member string
	// answers is Config.Answers, silent Config.Silent.
	answers func(ctx context.Context, member string) bool
	silent  error
}

// roundTrip is that of a transport, with an error that Is Config.Silent if the agent gave no
// sign of life while the reply was waited for. Once that has begun nothing ends it.
func (v vigil) roundTrip(transport http.RoundTripper, out *http.Request) (*http.Response, error) {
	if v.answers == nil {
		return transport.RoundTrip(out)
	}
	var decided atomic.Bool // By who is first: the reply has begun, or the request is given up.
	ctx, giveUp := context.WithCancel(out.Context())
	done := make(chan struct{})
	defer close(done)
	asking := time.AfterFunc(patience, func() {
		for v.answers(ctx, v.member) {
			select {
			case <-time.After(askedAgain):
			case <-done:
				return
			}
		}
		if decided.CompareAndSwap(false, true) {
			giveUp()
		}
	})
	defer asking.Stop()
	res, err := transport.RoundTrip(out.WithContext(ctx))
	if !decided.CompareAndSwap(false, true) {
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, fmt.Errorf("waiting for a reply: %w", v.silent)
	}
	if err != nil {
		giveUp()
	}
	return res, err
}
