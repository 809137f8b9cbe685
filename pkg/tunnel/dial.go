// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
)

// Dial opens a connection to an address of the cluster, a member: one of the targets that its agent
// serves, such as [APIServer], or host:port if the agent allows that. The network must be tcp, tcp4
// or tcp6 and has no other effect: the agent decides how it reaches a target. Errors are those of
// DialMember.
func (r *Registry) Dial(ctx context.Context, cluster, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
		return r.DialMember(ctx, cluster, address)
	}
	return nil, fmt.Errorf("dialing %s of member %q: %w", address, cluster, net.UnknownNetworkError(network))
}

// DialMember opens a connection to a target of the member. It returns when the agent has reached
// the target. Otherwise it returns:
//
//   - [ErrNotConnected], at once, when the member has no session here; the error is
//     also [ErrDraining] when the agent is about to disconnect, and [ErrUnresponsive] when
//     the agent did not respond to [Registry.Responds];
//   - a [RefusedError] with the agent's reason;
//   - the cause of ctx, or context.DeadlineExceeded after Options.DialTimeout.
//
// The connection outlives ctx. It is a net.Conn that also has CloseWrite and Reset.
func (r *Registry) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	return r.dialCounted(ctx, member, target, false)
}

// DialEagerly is DialMember without waiting for the agent. It saves a round trip to the member for
// callers whose own protocol waits for a response, like TLS. If the agent refuses, the first Read
// returns the error.
func (r *Registry) DialEagerly(ctx context.Context, member, target string) (net.Conn, error) {
	return r.dialCounted(ctx, member, target, true)
}

func (r *Registry) dialCounted(ctx context.Context, member, target string, eager bool) (net.Conn, error) {
	if err := validTarget(target); err != nil {
		return nil, err
	}
	conn, err := r.dial(ctx, member, target, eager)
	r.metrics.dialed(member, err)
	if err != nil {
		return nil, fmt.Errorf("dialing %s of member %q: %w", target, member, err)
	}
	return conn, nil
}

// dial tries the member's sessions, the newest first: after a broken network it is the one that
// certainly works. An agent's refusal applies to all of them, unless only that session is busy, or
// only that agent does not know the target.
func (r *Registry) dial(ctx context.Context, member, target string, eager bool) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.options.DialTimeout)
	defer cancel()
	conn, err := r.dialHere(ctx, member, target, dialing{eager: eager})
	switch {
	case err == nil || !errors.Is(err, ErrNotConnected) && !isRefusedAs(err, UnknownTarget):
		return conn, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return r.dialPeers(ctx, member, target, err)
}

// dialing is how a stream is dialed.
type dialing struct {
	// eager does not wait for the agent.
	eager bool
	// nonce is that of another gateway's data connection; empty if it wants none.
	nonce string
}

// dialHere uses this gateway's own sessions.
func (r *Registry) dialHere(ctx context.Context, member, target string, how dialing) (net.Conn, error) {
	var last error
	for _, s := range r.sessions(member) {
		if r.isRetired(s) {
			last = ErrDraining
			continue
		}
		if s.isUnresponsive() {
			last = ErrUnresponsive
			continue
		}
		conn, err := s.dial(ctx, target, how)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil || isFinal(err) {
			return nil, err
		}
		last = err
	}
	if last == nil {
		return nil, ErrNotConnected
	}
	if errors.Is(last, ErrSessionClosed) || errors.Is(last, ErrDraining) || errors.Is(last, ErrUnresponsive) {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, last)
	}
	return nil, last
}

// isFinal is true if another session would give the same result.
func isFinal(err error) bool {
	return IsRefused(err) && !isRefusedAs(err, Busy, UnknownTarget)
}

func isRefusedAs(err error, codes ...Code) bool {
	var refused *RefusedError
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}
