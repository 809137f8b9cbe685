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
	requestTimeout  = 20 * time.Second
	maxRefusal      = 512
)

// grants asks the agent of one member to let the gateway impersonate callers. It caches the results
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

func newGrants(member string, dialer Dialer, probe agentProbe) *grants {
	g := &grants{member: member, agentProbe: probe, results: newResultCache[string](grantsPerMember)}
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
		ResponseHeaderTimeout:  requestTimeout,
		MaxResponseHeaderBytes: 16 << 10,
		DisableCompression:     true,
	}
	return g
}

// ensure requests a grant unless the result is cached. A refusal is the agent's reason as the agent
// wrote it. An error means that the result is unknown.
func (g *grants) ensure(ctx context.Context, as Impersonation) (refusal string, err error) {
	return g.within(ctx, as, grantedFor)
}

// within is ensure with a result that is not older than age.
func (g *grants) within(ctx context.Context, as Impersonation, age time.Duration) (refusal string, err error) {
	return g.results.within(ctx, as.key(), age, cacheTime, func(ctx context.Context) (string, error) {
		refusal, err := g.request(ctx, as)
		if err != nil {
			return "", fmt.Errorf("asking the agent of member %q: %w", g.member, err)
		}
		return refusal, nil
	})
}

// cacheTime is how long a result is cached.
func cacheTime(refusal string) time.Duration {
	if refusal != "" {
		return refusedFor
	}
	return grantedFor
}

// request returns the agent's refusal, empty if it has granted.
func (g *grants) request(ctx context.Context, as Impersonation) (string, error) {
	groups := as.Groups
	if groups == nil {
		groups = []string{}
	}
	body, err := json.Marshal(grantRequest{User: as.User, Groups: groups})
	if err != nil {
		return "", fmt.Errorf("encoding the request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://agent/v1/impersonations", bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("creating the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := g.agentProbe.roundTrip(g.transport, req, nil)
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
		return "", fmt.Errorf("reading the reply: %w", err)
	case res.StatusCode == http.StatusNoContent:
		return "", nil
	case res.StatusCode != http.StatusForbidden:
		return "", fmt.Errorf("the agent replied with %d", res.StatusCode)
	}
	var reply struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(content, &reply); err != nil || reply.Message == "" {
		//lint:ignore nilerr A refusal that is not in the format of our agents has no reason.
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
