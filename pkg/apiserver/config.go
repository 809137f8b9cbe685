// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
)

// Config holds everything the API server needs.
type Config struct {
	// Hub is the client configuration of the hub's API server. It authenticates and authorizes
	// callers through TokenReview, SubjectAccessReview and the ConfigMap
	// kube-system/extension-apiserver-authentication. Not needed if both Authenticator and
	// Authorizer are given.
	Hub *rest.Config
	// Authenticator and Authorizer replace those of the hub in tests.
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer

	// Listener accepts connections. If nil, the server listens on Address.
	Listener net.Listener
	// Address is a host and port, by default ":8443".
	Address string
	// Replicas returns the number of replicas. If there are several, clients of HTTP/2 are asked to
	// reconnect from time to time, and when there are more. If nil, there is one.
	Replicas func() int
	// Certificate is the serving certificate. It may change at any time.
	Certificate dynamiccertificates.CertKeyContentProvider

	// Members is the inventory. The caller fills it.
	Members *clustergateway.Inventory
	// Credentials are the gateway's credentials for the members.
	Credentials clustergateway.Credentials
	// Dialer opens streams to members.
	Dialer clustergateway.Dialer
	// NotConnected is the error (errors.Is) that Dialer returns if no agent of the member is
	// connected.
	NotConnected error
	// Responds probes a member's agent and is false if the agent did not respond. While it is false,
	// the Dialer's errors are Silent. If nil, agents are not probed.
	Responds func(ctx context.Context, member string) bool
	Silent   error
	// Expected is true if the agent of a disconnected member probably reconnects within seconds.
	// Only then are clients asked to retry. If nil, every agent is expected to reconnect.
	Expected func(member string) bool
	// LastSessionChange returns when the member last got or lost a tunnel. Connections that were opened before
	// that time take no further requests. If nil, connections are used until they end.
	LastSessionChange func(member string) time.Time
	// MemberServerName is the name in the certificates of the members' API servers, by default
	// kubernetes.default.svc.
	MemberServerName string
	// MaxInFlightPerMember limits short requests in flight for one member, by default 400.
	MaxInFlightPerMember int
	// MaxInFlightPerUser limits short requests in flight of one caller for all members together, by
	// default 200.
	MaxInFlightPerUser int
	// MaxLongPerMember and MaxLongPerUser are the same limits for long-running requests, such as
	// watches and exec, by default 5000 and 20000.
	MaxLongPerMember, MaxLongPerUser int
	// SlowReaders limits what is buffered for readers of replies that are behind, by default to
	// clustergateway.DefaultUnread in all.
	SlowReaders clustergateway.SlowReaders
	// ReviewPeriod is how often the authorization of a long-running request is checked again, by
	// default 20 s.
	ReviewPeriod time.Duration
	// MemberDomain is a domain, in lower case, below which each member has a host name of its own
	// at Address. If unset, members have no host names.
	MemberDomain string
	// AuthorizeMemberRequests also authorizes each request to a member on the hub, in group
	// request.fleetgate.io.
	AuthorizeMemberRequests bool
	// MemberGroups maps groups of the hub to groups that members see instead.
	MemberGroups map[string]string
	// Views returns the FleetViews through which several members are read. If nil, only the views
	// that need no object are served.
	Views fleetview.Views
	// Debug returns the handler for paths below DebugPrefix. Callers are authenticated, but the
	// handler has to authorize them. If nil, nothing is served there.
	Debug func(may authorizer.UnconditionalAuthorizer) http.Handler
	// Recorder records each request to a member. If nil, requests are not recorded.
	Recorder clustergateway.Recorder
	// AuditPolicyFile is a policy in the format of the Kubernetes API server. It selects the audit
	// events that are written to AuditLogPath ("-" is stdout). Events of requests to members carry
	// the identity that the member saw as annotations. If unset, no events are written.
	AuditPolicyFile, AuditLogPath string

	// Tunnels returns the handler of the requests by which the agent of a member opens a tunnel. If
	// nil, the group tunnel.fleetgate.io is not served.
	Tunnels func(member string) http.Handler
	// IsAgentOf is true for a user who may open the member's tunnels. Required with
	// Tunnels.
	IsAgentOf func(ctx context.Context, username, member string) (bool, error)
	// Connected is true if a member has an open tunnel. If nil, the inventory relies on the status
	// that agents have reported.
	Connected func(member string) bool

	// RequestTimeout limits requests that are not long-running, by default one
	// minute.
	RequestTimeout time.Duration
	// DrainTime is how long requests that no caller can resume, such as exec, may continue after
	// Run's context has ended. If 0, they end with it.
	DrainTime time.Duration
	// OnServing, if not nil, is called once requests are served and callers can be authenticated.
	// Users must not be routed to this server earlier, because it would refuse them.
	OnServing func()
	// Metrics registers the server's metrics. If nil, there are none.
	Metrics prometheus.Registerer
	// Spans creates the server's spans. If nil, there are none. The caller shuts it down.
	Spans trace.TracerProvider
}

// CompletedConfig is a validated Config with defaults.
type CompletedConfig struct{ config *Config }

const (
	defaultAddress        = ":8443"
	defaultRequestTimeout = time.Minute
)

// complete sets the defaults that every server has.
func (c *Config) complete() {
	if c.Address == "" {
		c.Address = defaultAddress
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = defaultRequestTimeout
	}
	if c.Spans == nil {
		c.Spans = noop.NewTracerProvider()
	}
}

// Complete sets defaults and validates the rest. Its error names everything that is missing.
func (c Config) Complete() (CompletedConfig, error) {
	c.complete()
	if c.Views == nil {
		c.Views = fleetview.NoViews
	}
	var missing []error
	need := func(present bool, what string) {
		if !present {
			missing = append(missing, errors.New("the API server needs "+what))
		}
	}
	need(c.Hub != nil || c.Authenticator != nil && c.Authorizer != nil, "a connection to the hub")
	need(c.Certificate != nil, "a serving certificate")
	need(c.Members != nil, "the inventory of members")
	need(c.Credentials != nil, "credentials for members")
	need(c.Dialer != nil, "a dialer into members")
	need((c.AuditPolicyFile == "") == (c.AuditLogPath == ""), "both an audit policy and a path of the audit log, or neither")
	need(c.Tunnels == nil || c.IsAgentOf != nil, "to know who may open the tunnels of a member")
	return CompletedConfig{config: &c}, errors.Join(missing...)
}
