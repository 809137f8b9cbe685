// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

const (
	// clockSkew is how much earlier a token may expire by the hub's clock.
	clockSkew = 10 * time.Second
	// expiredGrace is how long connections may continue after the credential of an agent has
	// expired that cannot be asked to reconnect. It reconnects when it is cut.
	expiredGrace = 30 * time.Second
)

// review returns why the session has to end, or nil when ctx has ended.
func (a *AgentServer) review(ctx context.Context, s *session, id Identity) error {
	var expiring <-chan time.Time
	if !id.Expires.IsZero() {
		timer := time.NewTimer(time.Until(id.Expires) - tunnel.RenewBefore)
		defer timer.Stop()
		expiring = timer.C
	}
	// The agent may have lost its identity between its admission and now, when Disconnect finds it.
	if err := a.mayStay(ctx, s, Identity{Name: id.Name}); err != nil {
		return err
	}
	for {
		wait := time.NewTimer(a.options.ReviewPeriod + rand.N(a.options.ReviewPeriod/4+1))
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-expiring:
			wait.Stop()
			return a.expire(ctx, s, id)
		case <-wait.C:
		}
		if err := a.mayStay(ctx, s, id); err != nil {
			return err
		}
	}
}

// expire serves the last time of a session before its credential expires. The agent can reconnect
// with a new credential, and this session ends with its last connection.
func (a *AgentServer) expire(ctx context.Context, s *session, id Identity) error {
	s.retire()
	last := id.Expires.Add(expiredGrace)
	if s.agent.extended {
		last = id.Expires.Add(tunnel.ExpiredLimit)
	}
	ticker := time.NewTicker(a.options.ReviewPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := time.Now()
		if now.After(id.Expires) && s.open.Load() == 0 || now.After(last) {
			return errors.New("the agent's credential has expired")
		}
		if now.After(id.Expires.Add(-clockSkew)) {
			id.token = "" // the hub no longer knows the token; the member is still reviewed
		}
		if err := a.mayStay(ctx, s, id); err != nil {
			return err
		}
	}
}

// mayStay returns why the session has to end. A failed review is no reason.
func (a *AgentServer) mayStay(ctx context.Context, s *session, id Identity) error {
	valid, err := true, error(nil)
	if !a.options.Watched(id.Name, s.member) {
		valid, err = a.options.Credentials.stillValid(ctx, id)
	}
	if err == nil && !valid {
		return errors.New("the agent's credential was revoked")
	}
	is, memberErr := a.options.IsAgentOf(ctx, id.Name, s.member)
	if memberErr == nil && !is {
		return fmt.Errorf("%q is no longer the agent of member %q", id.Name, s.member)
	}
	if err := errors.Join(err, memberErr); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Info("Could not review a Konnectivity agent; keeping its session", "member", s.member, "reason", err.Error())
	}
	return nil
}
