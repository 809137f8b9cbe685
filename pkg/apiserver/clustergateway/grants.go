// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	grantsPerMember = 1024
	grantedFor      = 5 * time.Minute
	refusedFor      = 5 * time.Second
	askTimeout      = 20 * time.Second
	maxRefusal      = 512
)

// grants asks the agent of one member to let the gateway impersonate callers. It caches the answers
// while the connection to the agent lasts, for at most grantedFor.
type grants struct {
	member     string
	transport  *http.Transport
	agentProbe agentProbe
	// results maps Impersonation.key to a refusal, empty if it was granted. A broken connection
	// clears it.
	results *resultCache[string]
}

// grantRequest is the body of POST /v1/impersonations.
type grantRequest struct {
	User   string   `json:"user"`
	Groups []string `json:"groups"`
}

func newGrants(member string, dialer Dialer, watch agentProbe) *grants {
	g := &grants{member: member, agentProbe: watch, results: newResultCache[string](grantsPerMember)}
	g.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			conn, err := dialer.DialMember(ctx, member, targetAgent)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: conn, closed: g.results.forget}, nil
		},
		MaxConnsPerHost:        2,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        2 * grantedFor,
		ResponseHeaderTimeout:  askTimeout,
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true,
	}
	return g
}

// ensure asks the agent unless the answer is cached. A refusal is the agent's reason as the agent
// wrote it. An error means that the agent could not be asked.
func (g *grants) ensure(ctx context.Context, as Impersonation) (refusal string, err error) {
	return g.within(ctx, as, grantedFor)
}

// within is ensure with an answer that is not older than age.
func (g *grants) within(ctx context.Context, as Impersonation, age time.Duration) (refusal string, err error) {
	return g.results.within(ctx, as.key(), age, grantKept, func(ctx context.Context) (string, error) {
		refusal, err := g.ask(ctx, as)
		if err != nil {
			return "", fmt.Errorf("asking the agent of member %q: %w", g.member, err)
		}
		return refusal, nil
	})
}

// grantKept is how long an agent's answer is cached.
func grantKept(refusal string) time.Duration {
	if refusal != "" {
		return refusedFor
	}
	return grantedFor
}

// ask returns the agent's refusal, empty if it has granted.
func (g *grants) ask(ctx context.Context, as Impersonation) (string, error) {
	groups := as.Groups
	if groups == nil {
		groups = []string{}
	}
	body, err := json.Marshal(grantRequest{User: as.User, Groups: groups})
	if err != nil {
		return "", fmt.Errorf("encoding the question: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/v1/impersonations", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("making the question: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := g.agentProbe.roundTrip(g.transport, req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	return readResult(res)
}

func readResult(res *http.Response) (string, error) {
	content, err := io.ReadAll(io.LimitReader(res.Body, 8<<10))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading the answer: %w", err)
	case res.StatusCode == http.StatusNoContent:
		return "", nil
	case res.StatusCode != http.StatusForbidden:
		return "", fmt.Errorf("the agent answered %d", res.StatusCode)
	}
	var reply struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(content, &reply); err != nil || reply.Message == "" {
		//lint:ignore nilerr What is no answer of ours holds no reason.
		return "the agent gave no reason", nil
	}
	return untrusted.Excerpt(reply.Message, maxRefusal), nil
}

func (g *grants) close() { g.transport.CloseIdleConnections() }

// watchedConn calls back once when it is closed, by either side.
type watchedConn struct {
	net.Conn
	once   sync.Once
	closed func()
}

func (c *watchedConn) Close() error {
	c.once.Do(c.closed)
	return c.Conn.Close()
}
