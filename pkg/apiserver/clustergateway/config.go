// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// DefaultMaxInFlight limits short requests in flight for one member.
	DefaultMaxInFlight = 400
	// DefaultMaxInFlightPerUser limits short requests in flight of one caller for all members.
	DefaultMaxInFlightPerUser = 200
	// DefaultMaxLong limits long-running requests in flight (watches, followed logs, exec, attach,
	// port-forward) for one member.
	DefaultMaxLong = 5000
	// DefaultMaxLongPerUser limits those of one caller for all members. It suffices for a
	// controller that watches 100 kinds on 200 members.
	DefaultMaxLongPerUser = 20000
)

// MemberServerName is the name that the certificate of every Kubernetes API server is valid for.
const MemberServerName = "kubernetes.default.svc"

// Config is what a Handler needs. The fields up to Liveness are required; SetDefaults sets others.
type Config struct {
	// Members is the inventory. The caller fills it.
	Members *Inventory
	// Credentials are the gateway's credentials for the members.
	Credentials Credentials
	// Dialer opens streams to members.
	Dialer Dialer
	// Liveness knows whether members' agents are connected.
	Liveness Liveness
	// NotConnected is the Dialer's error (errors.Is) if no agent of the member is connected,
	// Unresponsive its error while Liveness.Responds is false.
	NotConnected, Unresponsive error

	// MaxInFlightPerMember limits short requests in flight for one member, by default
	// DefaultMaxInFlight.
	MaxInFlightPerMember int
	// MaxInFlightPerUser limits short requests in flight of one caller for all members together, by
	// default DefaultMaxInFlightPerUser.
	MaxInFlightPerUser int
	// MaxLongPerMember and MaxLongPerUser are the same limits for long-running requests, such as
	// watches and exec, by default DefaultMaxLong and DefaultMaxLongPerUser.
	MaxLongPerMember, MaxLongPerUser int
	// SlowReaders limits what is buffered for readers of replies that are behind, by default to
	// DefaultUnread in all.
	SlowReaders SlowReaders
	// ReviewPeriod is how often the authorization of a long-running request is checked again, by
	// default DefaultReviewPeriod.
	ReviewPeriod time.Duration
	// AuthorizeMemberRequests also authorizes each request to a member on the hub, in group
	// InnerGroup.
	AuthorizeMemberRequests bool
	// MemberGroups maps groups of the hub to groups that members see instead.
	MemberGroups map[string]string
	// Recorder records each request to a member. If nil, requests are not recorded.
	Recorder Recorder
	// MemberServerName is the name in the certificates of the members' API servers, by default the
	// constant of this name.
	MemberServerName string
	// Metrics registers the metrics. If nil, there are none.
	Metrics prometheus.Registerer
	// Spans creates the spans. If nil, there are none. The caller shuts it down.
	Spans trace.TracerProvider
}

// Authorizers ask the hub what callers may do.
type Authorizers struct {
	// Requests decides about requests that wait for the decision.
	Requests authorizer.UnconditionalAuthorizer
	// Reviews decides about requests in flight, and about the members of a view one by one.
	Reviews authorizer.UnconditionalAuthorizer
}

// Dialer opens streams to members. If no agent of the member is connected it fails at once, with an
// error that Is Config.NotConnected.
type Dialer interface {
	DialMember(ctx context.Context, member, target string) (net.Conn, error)
}

// DialerFunc adapts a function to Dialer.
type DialerFunc func(ctx context.Context, member, target string) (net.Conn, error)

// DialMember implements Dialer.
func (f DialerFunc) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	return f(ctx, member, target)
}

// Liveness knows whether members' agents are connected. Registry of package tunnel implements it.
type Liveness interface {
	// Reachable is true if a dial to the member can succeed.
	Reachable(member string) bool
	// Responds probes the member's agent and is false if the agent did not respond.
	Responds(ctx context.Context, member string) bool
	// Expected is true if the agent of a disconnected member probably reconnects within seconds.
	// Only then are clients told to retry.
	Expected(member string) bool
	// LastSessionChange returns when the member last got or lost a tunnel. Connections that were
	// opened before that time take no further requests.
	LastSessionChange(member string) time.Time
}

// Credential authenticates the gateway to a member, and the member to the gateway.
type Credential struct {
	// Token is the bearer token of the gateway's account on the member.
	Token string
	// CA is the PEM bundle that verifies the certificate of the member's API server.
	CA []byte
}

// Credentials returns the current credential of a member from memory. It is called once per
// request.
type Credentials interface {
	Credential(member string) (Credential, error)
}

// CredentialsFunc adapts a function to Credentials.
type CredentialsFunc func(member string) (Credential, error)

// Credential implements Credentials.
func (f CredentialsFunc) Credential(member string) (Credential, error) { return f(member) }

// SetDefaults sets what the caller left out, except for ReviewPeriod: requests for views have another
// default.
func (c *Config) SetDefaults() {
	if c.Recorder == nil {
		c.Recorder = func(context.Context, Record) {}
	}
	if c.MemberServerName == "" {
		c.MemberServerName = MemberServerName
	}
	if c.Spans == nil {
		c.Spans = noop.NewTracerProvider()
	}
	c.MaxInFlightPerMember = orDefault(c.MaxInFlightPerMember, DefaultMaxInFlight)
	c.MaxInFlightPerUser = orDefault(c.MaxInFlightPerUser, DefaultMaxInFlightPerUser)
	c.MaxLongPerMember = orDefault(c.MaxLongPerMember, DefaultMaxLong)
	c.MaxLongPerUser = orDefault(c.MaxLongPerUser, DefaultMaxLongPerUser)
}

func orDefault[T int | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
