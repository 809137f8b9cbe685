// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// dialOver asks the agents of one of the streams for a target: [tunnel.APIServer], or an address as
// host:port that Allow has. Its errors are those of [tunnel.Session].
func (a *AgentServer) dialOver(ctx context.Context, sessions []*session, target string) (net.Conn, error) {
	last := tunnel.ErrNotConnected
	for _, s := range inOrder(sessions) {
		protocol, address, err := a.question(ctx, s, target)
		if err == nil {
			var conn net.Conn
			if conn, err = s.dial(ctx, target, protocol, address); err == nil {
				return conn, nil
			}
		}
		if ctx.Err() != nil || tunnel.IsRefused(err) && !isBusy(err) {
			return nil, err
		}
		last = err
	}
	return nil, last
}

// inOrder sorts sessions: active ones before retired ones, then by the fewest connections, then the
// newest first.
func inOrder(sessions []*session) []*session {
	sessions = slices.Clone(sessions)
	weight := func(s *session) int64 {
		if s.retired.Load() {
			return s.open.Load() + 1<<32
		}
		return s.open.Load()
	}
	slices.SortStableFunc(sessions, func(x, y *session) int { return int(min(max(weight(x)-weight(y), -1), 1)) })
	return sessions
}

const (
	// protocolTarget is the network in dials to our own agents: the address is the name of a
	// target. Upstream's agents do not know it.
	protocolTarget = "fleetgate-target"
	protocolTCP    = "tcp"
)

// question returns the dial that asks an agent for a target.
func (a *AgentServer) question(ctx context.Context, s *session, target string) (protocol, address string, err error) {
	if len(target) > tunnel.MaxTargetLength {
		return "", "", fmt.Errorf("a target has at most %d characters, this one has %d", tunnel.MaxTargetLength, len(target))
	}
	switch {
	case s.agent.extended && hostOf(target) == "":
		return protocolTarget, target, nil
	case s.agent.extended:
		return protocolTCP, target, nil
	case target == tunnel.APIServer:
		address, err = a.apiServerOf(ctx, s.member)
		return protocolTCP, address, err
	case !a.options.Allow.has(target):
		return "", "", &tunnel.RefusedError{Code: tunnel.UnknownTarget, Message: "the gateway does not dial " + printable(target) + " through this agent"}
	}
	return protocolTCP, target, nil
}

// apiServerOf is the address of the member's API server for an agent of upstream's.
func (a *AgentServer) apiServerOf(ctx context.Context, member string) (string, error) {
	own, err := a.options.APIServerOf(ctx, member)
	switch {
	case err != nil:
		return "", fmt.Errorf("looking up where the API server of member %s is: %w", member, err)
	case own == "":
		return a.options.APIServer, nil
	case !IsAddress(own):
		return "", fmt.Errorf("%s, which its MemberCluster has for the API server of member %s, is not host:port, with a port from 1 to 65535",
			printable(own), member)
	}
	return own, nil
}

// IsAddress reports whether an agent of upstream's can be asked for it: host:port, with a port from
// 1 to 65535.
func IsAddress(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	return err == nil && number > 0
}
