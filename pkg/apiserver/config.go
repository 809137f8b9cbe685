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

// Config is all that the API server is made of.
type Config struct {
	// Hub is how the hub's API server is reached, to authenticate and authorize
	// callers: TokenReview, SubjectAccessReview and the ConfigMap
	// kube-system/extension-apiserver-authentication. Not needed if both
	// Authenticator and Authorizer are given.
	Hub *rest.Config
	// Authenticator and Authorizer replace the hub's, in tests.
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer

	// Listener is where to serve; if nil, Address is listened on.
	Listener net.Listener
	// Address is a host and port, by default ":8443".
	Address string
	// Certificate is what the server shows; it may change at any time.
	Certificate dynamiccertificates.CertKeyContentProvider

	// Members is the inventory, filled by whoever hands it in.
	Members *clustergateway.Inventory
	// Credentials are the gateway's own on the members.
	Credentials clustergateway.Credentials
	// Dialer opens streams into members.
	Dialer clustergateway.Dialer
	// NotConnected is what the Dialer's errors are (errors.Is) if no agent of
	// the member is connected.
	NotConnected error
	// Answers asks a member's agent for a sign of life, and is false if it gave none; the
	// Dialer's errors are Silent as long as it is so. If nil, nobody asks.
	Answers func(ctx context.Context, member string) bool
	Silent  error
	// Expected says whether the agent of a member that is not connected may well be back
	// in seconds: only then clients are asked to come again. nil expects all.
	Expected func(member string) bool
	// Departed is when the member last lost a way through a tunnel: connections made before
	// are not used for further requests. If nil, all are used until they end.
	Departed func(member string) time.Time
	// MemberServerName is what the certificates of the members' API servers are
	// valid for, by default kubernetes.default.svc.
	MemberServerName string
	// MaxInFlightPerMember is how many short requests for one member may be
	// under way, by default 400.
	MaxInFlightPerMember int
	// MaxInFlightPerUser is how many short requests of one caller may be, for all
	// members together, by default 200.
	MaxInFlightPerUser int
	// MaxLongPerMember and MaxLongPerUser are the same for requests that last, such as
	// watches and exec, by default 5000 and 20000.
	MaxLongPerMember, MaxLongPerUser int
	// ReviewPeriod is how often it is asked again whether a request that lasts may go on,
	// by default 20 s.
	ReviewPeriod time.Duration
	// MemberDomain is a domain below which each member has a host of its own at Address, in
	// lower case; empty if there is none.
	MemberDomain string
	// AuthorizeMemberRequests has the hub asked about each request on the member too, in
	// group request.fleetgate.io.
	AuthorizeMemberRequests bool
	// Views gives the FleetViews through which several members are read; if nil, there are
	// none but those that need no object.
	Views fleetview.Views
	// Debug makes what answers requests below DebugPrefix, whose callers are known. It asks
	// itself what they may; nil serves nothing there.
	Debug func(may authorizer.UnconditionalAuthorizer) http.Handler
	// Recorder keeps a record of each request for a member; nil keeps none.
	Recorder clustergateway.Recorder
	// AuditPolicyFile is a policy as a Kubernetes API server takes it, by which audit
	// events are written to AuditLogPath ("-" is stdout). Those of requests for members
	// carry whom the member saw as annotations. If empty, no events are written.
	AuditPolicyFile, AuditLogPath string

	// Tunnels returns what takes over a request by which the agent of a member
	// opens a tunnel. If nil, the group tunnel.fleetgate.io is not served.
	Tunnels func(member string) http.Handler
	// IsAgentOf is true for a user who may open the member's tunnels. Required with
	// Tunnels.
	IsAgentOf func(ctx context.Context, username, member string) (bool, error)
	// Connected tells whether a member has a tunnel open; nil means that nobody
	// knows: then the inventory says of members what their agents have reported.
	Connected func(member string) bool

	// RequestTimeout limits requests that are not long-running, by default one
	// minute.
	RequestTimeout time.Duration
	// DrainTime is how long requests that no caller can resume, such as exec, may go on
	// after Run's context has ended. If 0, they end with it.
	DrainTime time.Duration
	// OnServing, if not nil, is called once requests are answered, with callers known: before, whoever sends
	// users to this server would have them refused.
	OnServing func()
	// Metrics are registered here; nil means that nobody reads them.
	Metrics prometheus.Registerer
	// Spans are made here; nil makes none. Whoever hands it in shuts it down.
	Spans trace.TracerProvider
}

// CompletedConfig is a Config that can be built.
type CompletedConfig struct{ config *Config }

const (
	defaultAddress        = ":8443"
	defaultRequestTimeout = time.Minute
)

// complete fills in the defaults that every server has.
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

// Complete fills in defaults and fails, with everything that is missing at once,
// if the rest is not enough.
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
