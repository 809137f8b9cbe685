// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"
)

const (
	// reviewPeriod is how often the admission of a session is reviewed.
	reviewPeriod = 10 * time.Second
	// RenewBefore is how long before its credential expires an agent is asked to reconnect.
	RenewBefore = time.Minute
	// proofLifetime is how long after its admission an agent is admitted again at the latest, if nothing
	// else ends its credential. Half of it is the least, so that all agents do not reconnect at the
	// same time. It is long, because a hub that issues no tokens for an hour should cost few tunnels.
	proofLifetime = 24 * time.Hour
	// ExpiredLimit is how long streams may continue in a session whose credential has expired, if its
	// agent was asked to reconnect. It has another session by then.
	ExpiredLimit = 24 * time.Hour
)

var (
	errRevoked = errors.New("the agent's identity was revoked, or belongs to another member")
	errExpired = errors.New("the agent's credential has expired")
)

// Credential is what a session was admitted with. It is reviewed while the session lasts. The zero
// value is valid without end.
type Credential struct {
	// Expires is when it expires. If it is zero, because that is unknown or does not matter, and
	// StillValid is set, the agent proves its identity again after a day at most.
	Expires time.Time
	// StillValid is false once the agent would no longer be admitted. It is called as soon as dials
	// find the session, because the agent may have lost its identity in the meantime, and then every
	// 10 s. An error means that this is not known, and ends nothing.
	StillValid func(ctx context.Context) (bool, error)
	// atPort is true at the gateway's own port, where the agent can also open data connections.
	atPort bool
}

// review returns why the session has to end, or nil when ctx has ended.
func (r *Registry) review(ctx context.Context, s *session, c Credential) error {
	if c.Expires.IsZero() && c.StillValid == nil {
		return nil
	}
	if c.Expires.IsZero() {
		c.Expires = time.Now().Add(time.Duration((1 + rand.Float64()) / 2 * float64(proofLifetime)))
	}
	ticker := time.NewTicker(reviewPeriod)
	defer ticker.Stop()
	expiring, expired := false, false
	for {
		if c.isRevoked(ctx, s.member) {
			return errRevoked
		}
		now := time.Now()
		if !expiring && c.isExpiredAt(now.Add(RenewBefore)) {
			expiring = true
			s.Drain()
		}
		if !expired && c.isExpiredAt(now) {
			expired = true
			r.retire(s)
		}
		if expired && (s.open.Load() == 0 || c.isExpiredAt(now.Add(-ExpiredLimit))) {
			return errExpired
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (c Credential) isExpiredAt(t time.Time) bool { return !c.Expires.IsZero() && !t.Before(c.Expires) }

func (c Credential) isRevoked(ctx context.Context, member string) bool {
	if c.StillValid == nil {
		return false
	}
	valid, err := c.StillValid(ctx)
	if err == nil {
		return !valid
	}
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Could not review the agent of a tunnel; keeping the tunnel", "member", member)
	}
	return false
}

// reviewed runs review beside a session. failed receives why the session has to end; wait returns
// when the review has ended.
func (r *Registry) reviewed(ctx context.Context, s *session, c Credential) (failed <-chan error, wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	result, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		if err := r.review(ctx, s, c); err != nil {
			result <- fmt.Errorf("%w: %w", ErrSessionClosed, err)
		}
	}()
	return result, func() {
		cancel()
		<-done
	}
}
