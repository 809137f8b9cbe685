// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	registryrest "k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/tracing"

	gatewayv1alpha1 "fleetgate.io/fleetgate/pkg/apis/gateway/v1alpha1"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
	"fleetgate.io/fleetgate/pkg/apiserver/openapi"
	"fleetgate.io/fleetgate/pkg/apiserver/tunnels"
)

// One member can have clustergateway.DefaultMaxInFlight requests in flight. These limits bound the
// requests of all members together.
const (
	maxInFlight         = 4000
	maxMutatingInFlight = 2000
)

// Server is an API server. It can run only once.
type Server struct {
	generic   *genericserver.GenericAPIServer
	gateway   *clustergateway.Handler
	views     *fleetview.Handler
	closing   func() error
	drainTime time.Duration
}

// New listens and builds the server. The context bounds its reads from the hub.
func (c CompletedConfig) New(ctx context.Context) (*Server, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	generic := genericserver.NewConfig(codecs)
	plain, err := c.listen(ctx)
	if err != nil {
		return nil, err
	}
	listener := newConnections(plain, c.config.Replicas)
	generic.SecureServing = &genericserver.SecureServingInfo{Listener: listener, Cert: c.config.Certificate}
	server, err := c.build(ctx, scheme, codecs, generic, listener)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return server, nil
}

func (c CompletedConfig) listen(ctx context.Context) (net.Listener, error) {
	if c.config.Listener != nil {
		return c.config.Listener, nil
	}
	var l net.ListenConfig
	listener, err := l.Listen(ctx, "tcp", c.config.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}
	return listener, nil
}

func (c CompletedConfig) build(ctx context.Context, scheme *runtime.Scheme, codecs serializer.CodecFactory, generic *genericserver.Config, open *connections) (*Server, error) {
	known, bulk, debug, err := c.callers(ctx, generic)
	if err != nil {
		return nil, err
	}
	hub := clustergateway.Authorizers{Requests: generic.Authorization.Authorizer, Reviews: bulk}
	gateway, err := clustergateway.New(c.config.Config, hub, codecs)
	if err != nil {
		return nil, err
	}
	var agents *tunnels.Handler
	if c.config.Tunnels != nil {
		agents = tunnels.New(tunnels.Config{
			Members: c.config.Members, IsAgentOf: c.config.IsAgentOf, Upgrade: c.config.Tunnels,
			Connected: c.config.Liveness.Reachable, Serializer: codecs,
		})
	}
	views := fleetview.New(fleetview.Config{
		Gateway: gateway, Inventory: c.config.Members, Views: c.config.Views, Authorizers: hub, Serializer: codecs,
		ReviewPeriod: c.config.ReviewPeriod,
	})
	c.configure(generic, scheme, routes{gateway: gateway, agents: agents, views: views, debug: debug}, open)
	refuseUnready(generic, codecs, known)
	if err := c.audit(generic); err != nil {
		return nil, err
	}
	built, err := generic.Complete(nil).New("fleetgate-gateway", genericserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("building the API server: %w", err)
	}
	if err := built.InstallAPIGroup(groupOf(gatewayv1alpha1.GroupVersion, gateway.Storage(), scheme, codecs)); err != nil {
		return nil, fmt.Errorf("installing %s: %w", gatewayv1alpha1.GroupVersion, err)
	}
	if agents != nil {
		if err := built.InstallAPIGroup(groupOf(tunnelv1alpha1.GroupVersion, agents.Storage(), scheme, codecs)); err != nil {
			return nil, fmt.Errorf("installing %s: %w", tunnelv1alpha1.GroupVersion, err)
		}
	}
	if serving := c.config.OnServing; serving != nil {
		// Hooks run after the server has started to listen, with its certificate and authorities
		// loaded.
		hook := func(ctx genericserver.PostStartHookContext) error {
			go onceKnown(ctx, known, serving)
			return nil
		}
		if err := built.AddPostStartHook("fleetgate-serving", hook); err != nil {
			return nil, fmt.Errorf("building the API server: %w", err)
		}
	}
	return &Server{generic: built, gateway: gateway, views: views, closing: generic.SecureServing.Listener.Close, drainTime: c.config.DrainTime}, nil
}

// Address returns the address that the server listens on.
func (s *Server) Address() net.Addr { return s.generic.SecureServingInfo.Listener.Addr() }

// Run serves until the context ends. Then it accepts no more requests and drains those in flight:
// short requests complete, watches end so that their callers move to another replica, and requests
// that cannot be resumed get DrainTime.
func (s *Server) Run(ctx context.Context) error {
	defer s.gateway.Close()
	drained := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(drained)
		s.drain(ctx)
	})
	if err := s.generic.PrepareRun().RunWithContext(ctx); err != nil {
		release()
		_ = s.closing()
		return fmt.Errorf("serving the aggregated API: %w", err)
	}
	// The generic server does not wait for connections that have switched protocols.
	<-drained
	return nil
}

func (s *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.drainTime)
	defer cancel()
	s.views.Stop()
	s.gateway.Drain(ctx)
}

// delegate configures authentication and authorization. The returned function fails until callers
// can be authenticated; bulk is the authorizer of reviews that must not delay others.
func (c CompletedConfig) delegate(ctx context.Context, generic *genericserver.Config) (known func() error, bulk authorizer.Authorizer, err error) {
	if c.config.Authenticator != nil && c.config.Authorizer != nil {
		generic.Authentication.Authenticator = c.config.Authenticator
		generic.Authorization.Authorizer = c.config.Authorizer
		return func() error { return nil }, c.config.Authorizer, nil
	}
	hub, err := newDelegation(c.config.Hub)
	if err != nil {
		return nil, nil, err
	}
	if known, err = hub.authentication(ctx, generic); err != nil {
		return nil, nil, err
	}
	generic.Authorization.Authorizer, bulk, err = hub.authorizers()
	return known, bulk, err
}

// callers extends delegate with the paths that have an authorization of their own.
func (c CompletedConfig) callers(ctx context.Context, generic *genericserver.Config) (known func() error, bulk authorizer.Authorizer, debug http.Handler, err error) {
	if known, bulk, err = c.delegate(ctx, generic); err != nil {
		return nil, nil, nil, err
	}
	debug, err = c.debug(generic)
	return known, bulk, debug, err
}

// DebugPrefix is the path prefix of Config.Debug.
const DebugPrefix = "/debug/"

// debug lets authenticated callers pass to the debug handler, which authorizes them itself.
func (c CompletedConfig) debug(generic *genericserver.Config) (http.Handler, error) {
	if c.config.Debug == nil {
		return nil, nil
	}
	of := generic.Authorization.Authorizer
	paths, err := path.NewAuthorizer([]string{DebugPrefix + "*"})
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", DebugPrefix, err)
	}
	generic.Authorization.Authorizer, err = union.New(
		union.NamedAuthorizer{AuthorizerName: "debug", Authorizer: paths}, union.NamedAuthorizer{AuthorizerName: "others", Authorizer: of})
	if err != nil {
		return nil, fmt.Errorf("serving %s: %w", DebugPrefix, err)
	}
	return c.config.Debug(of), nil
}

// plain sets the options that all servers of the gateway share.
func (c CompletedConfig) plain(generic *genericserver.Config) {
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	// There is no loopback client, because nothing in this process needs privileges.
	generic.LoopbackClientConfig = &rest.Config{}
	generic.EnableProfiling = false
	generic.EnableIndex = false
	generic.TracerProvider = keptOpen{c.config.Spans}
	generic.RequestTimeout = c.config.RequestTimeout
}

func (c CompletedConfig) configure(generic *genericserver.Config, scheme *runtime.Scheme, own routes, open *connections) {
	c.plain(generic)
	generic.MaxRequestsInFlight = maxInFlight
	generic.MaxMutatingRequestsInFlight = maxMutatingInFlight
	generic.LongRunningFunc = longRunning
	generic.BuildHandlerChainFunc = func(routed http.Handler, config *genericserver.Config) http.Handler {
		chain := genericserver.DefaultBuildHandlerChain(own.intercept(routed), config)
		return open.withGoaway(clustergateway.WithEndpoint(clustergateway.WithParsed(fleetview.WithParsed(chain)), c.config.MemberDomain))
	}
	namer := openapinamer.NewDefinitionNamer(scheme)
	generic.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIConfig.Info.Title = "fleetgate"
	generic.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions, namer)
	generic.OpenAPIV3Config.Info.Title = "fleetgate"
}

// keptOpen is a tracer provider whose owner shuts it down.
type keptOpen struct{ trace.TracerProvider }

var _ tracing.TracerProvider = keptOpen{}

// Shutdown does nothing, because the owner of the provider shuts it down.
func (keptOpen) Shutdown(context.Context) error { return nil }

// maxAuditLogs limits the audit log's files on disk, of 100 MiB each.
const maxAuditLogs = 10

// audit configures audit events in the same way as a Kubernetes API server.
func (c CompletedConfig) audit(generic *genericserver.Config) error {
	if c.config.AuditPolicyFile == "" {
		return nil
	}
	audit := options.NewAuditOptions()
	audit.PolicyFile, audit.LogOptions.Path, audit.LogOptions.MaxBackups = c.config.AuditPolicyFile, c.config.AuditLogPath, maxAuditLogs
	if err := errors.Join(audit.Validate()...); err != nil {
		return fmt.Errorf("setting the audit log up: %w", err)
	}
	if err := audit.ApplyTo(generic); err != nil {
		return fmt.Errorf("setting the audit log up: %w", err)
	}
	return nil
}

// routes are the handlers that take requests unchanged. tunnels is nil where the group is not
// served.
type routes struct {
	gateway *clustergateway.Handler
	views   *fleetview.Handler
	agents  *tunnels.Handler
	debug   http.Handler
}

// intercept takes the requests for routes out of the chain after every filter has run.
func (own routes) intercept(routed http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case clustergateway.Handles(r):
			own.gateway.ServeHTTP(w, r)
		case fleetview.Handles(r):
			own.views.ServeHTTP(w, r)
		case own.agents != nil && tunnels.Handles(r):
			own.agents.ServeHTTP(w, r)
		case own.debug != nil && strings.HasPrefix(r.URL.Path, DebugPrefix):
			own.debug.ServeHTTP(w, r)
		default:
			routed.ServeHTTP(w, r)
		}
	})
}

var ordinaryLongRunning = genericfilters.BasicLongRunningRequestCheck(sets.NewString("watch"), sets.NewString())

// longRunning classifies a request for a member by its inner request.
func longRunning(r *http.Request, info *apirequest.RequestInfo) bool {
	if long, proxied := clustergateway.LongRunning(r.Context()); proxied {
		return long
	}
	if long, viewed := fleetview.LongRunning(r.Context()); viewed {
		return long
	}
	return tunnels.IsTunnel(info) || ordinaryLongRunning(r, info)
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := gatewayv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering %s: %w", gatewayv1alpha1.GroupVersion, err)
	}
	if err := tunnelv1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering %s: %w", tunnelv1alpha1.GroupVersion, err)
	}
	unversioned := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, unversioned)
	scheme.AddUnversionedTypes(unversioned,
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme, nil
}

func groupOf(version schema.GroupVersion, storage map[string]registryrest.Storage, scheme *runtime.Scheme, codecs serializer.CodecFactory) *genericserver.APIGroupInfo {
	group := genericserver.NewDefaultAPIGroupInfo(version.Group, scheme, runtime.NewParameterCodec(scheme), codecs)
	group.VersionedResourcesStorageMap[version.Version] = storage
	return &group
}
