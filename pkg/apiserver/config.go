// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"

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
	// Replicas returns the number of replicas. Clients of HTTP/2 are asked to reconnect when there are
	// more. If nil, there is one.
	Replicas func() int
	// Certificate is the serving certificate. It may change at any time.
	Certificate dynamiccertificates.CertKeyContentProvider

	// Config is about requests to members. Its ReviewPeriod also applies to views, its Spans to all
	// requests.
	clustergateway.Config
	// MemberDomain is a domain, in lower case, below which each member has a host name of its own
	// at Address. If unset, members have no host names.
	MemberDomain string
	// Views returns the FleetViews through which several members are read. If nil, only the views
	// that need no object are served.
	Views fleetview.Views
	// Debug returns the handler for paths below DebugPrefix. Callers are authenticated, but the
	// handler has to authorize them. If nil, nothing is served there.
	Debug func(may authorizer.UnconditionalAuthorizer) http.Handler
	// AuditPolicyFile is a policy in the format of the Kubernetes API server. It selects the audit
	// events that are written to AuditLogPath ("-" is stdout). Events of requests to members carry
	// the identity that the member saw as annotations. If unset, no events are written.
	AuditPolicyFile, AuditLogPath string

	// Tunnels returns the handler of the requests by which the agent of a member opens a tunnel. If
	// nil, the group tunnel.fleetgate.io is not served.
	Tunnels func(member string) http.Handler
	// IsAgentOf is true for a user who may open the member's tunnels. Required with Tunnels.
	IsAgentOf func(ctx context.Context, username, member string) (bool, error)

	// RequestTimeout limits requests that are not long-running, by default one minute.
	RequestTimeout time.Duration
	// DrainTime is how long requests that no caller can resume, such as exec, may continue after
	// Run's context has ended. If 0, they end with it.
	DrainTime time.Duration
	// OnServing, if not nil, is called once requests are served and callers can be authenticated.
	// Users must not be routed to this server earlier, because it would refuse them.
	OnServing func()
}

// CompletedConfig is a validated Config with defaults.
type CompletedConfig struct{ config *Config }

// complete sets the defaults that every server has.
func (c *Config) complete() {
	c.SetDefaults()
	c.Address = cmp.Or(c.Address, ":8443")
	c.RequestTimeout = cmp.Or(c.RequestTimeout, time.Minute)
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
	need(c.Liveness != nil, "the liveness of members")
	need((c.AuditPolicyFile == "") == (c.AuditLogPath == ""), "both an audit policy and a path of the audit log, or neither")
	need(c.Tunnels == nil || c.IsAgentOf != nil, "to know who may open the tunnels of a member")
	return CompletedConfig{config: &c}, errors.Join(missing...)
}
