// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/membership"
	"fleetgate.io/fleetgate/pkg/kube/writepriority"
	"fleetgate.io/fleetgate/pkg/telemetry/tracing"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
)

const (
	// shutdownGrace is how long requests and reconciles in flight can take to end.
	shutdownGrace = 25 * time.Second
	// streamDrain is the part of shutdownGrace for streams that cannot be resumed, in tunnels and
	// to callers.
	streamDrain = 20 * time.Second
	// garbage is the garbage collector's target in percent of live memory. Most of a gateway's
	// memory is its knowledge of members, and Go's default would double it. Collecting at half of
	// that costs a few hundredths more of the gateway's CPU time.
	garbage = 50
)

// gateway has the state that the parts share; it is complete before the first part starts.
type gateway struct {
	*options.Config
	*hub
	certificates *serving.Certificates
	reviews      *webhook.Reviews
	manager      ctrl.Manager
	// members caches the objects that the hub created for members.
	members cache.Cache
	// policies is nil where no ImmutabilityPolicies are served.
	policies *policySet
	spans    trace.TracerProvider
	// order is the priority of all writes that can occur in large numbers.
	order writepriority.Order
}

// Run runs the gateway until the context ends. Its error names the problem and, where known, the
// remedy.
func Run(ctx context.Context, config *options.Config) error {
	if os.Getenv("GOGC") == "" { // The environment variable takes precedence.
		debug.SetGCPercent(garbage)
	}
	spans, err := tracing.Config(config.Process.Tracing).Provider(ctx, "gateway", config.REST)
	if err != nil {
		return err
	}
	defer tracing.Stop(ctx, spans)
	hub, err := openHub(ctx, config)
	if err != nil {
		return err
	}
	g, err := newGateway(ctx, config, hub, spans)
	if err != nil {
		return explain(err)
	}
	// The order does not matter: no part needs another one.
	for _, add := range []func(context.Context) error{
		g.addServing,
		g.addWebhooks,
		g.addMembers,
		g.addPolicies,
		g.addProxy,
		g.addLeader,
	} {
		if err := add(ctx); err != nil {
			return explain(err)
		}
	}
	return explain(g.manager.Start(ctx))
}

// explain adds the remedy to errors that have one.
func explain(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: another program has this port; choose another with --secure-port, --webhook-port, --metrics-bind-address or --health-probe-bind-address", err)
	}
	return err
}

func newGateway(ctx context.Context, config *options.Config, hub *hub, spans trace.TracerProvider) (*gateway, error) {
	certificates := newCertificates(config, hub.direct)
	reviews := newReviews(config, hub.direct, certificates)
	mgr, err := newManager(ctx, config, hub, certificates, reviews.Handover)
	if err != nil {
		return nil, err
	}
	policies, err := newPolicies(config)
	if err != nil {
		return nil, err
	}
	members, err := membership.NewMemberCache(config.REST, hub.cacheOptions(mgr.GetRESTMapper()))
	if err != nil {
		return nil, err
	}
	return &gateway{
		Config: config, hub: hub, certificates: certificates, reviews: reviews, manager: mgr, members: members, policies: policies, spans: spans,
	}, nil
}

// managerOptions are the options of every manager; such a manager serves no endpoints.
func managerOptions(hub *hub, parts *options.Features, grace time.Duration) ctrl.Options {
	return ctrl.Options{
		Scheme:                  hub.scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &grace,
		Cache:                   cache.Options{ByObject: withoutManifests(parts, &hub.common), DefaultTransform: hub.common.Transform},
		Client: client.Options{Cache: &client.CacheOptions{
			// Secrets are never cached as a whole: a typed read would start a watch on every Secret
			// of the hub.
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
	}
}

func newManager(ctx context.Context, config *options.Config, hub *hub, certificates *serving.Certificates, handover *intake.Handover) (ctrl.Manager, error) {
	settings := managerOptions(hub, &config.Features, shutdownGrace)
	settings.Metrics.BindAddress = config.Process.MetricsBindAddress
	settings.HealthProbeBindAddress, settings.LivenessEndpointName = config.Process.HealthProbeBindAddress, "/livez"
	settings.PprofBindAddress = config.Process.PprofBindAddress
	if config.Features.Serves(options.APIFleet) {
		settings.Cache.ByObject[&clusterv1beta1.MemberCluster{}] = cache.ByObject{Transform: hub.common.After(withoutUsage)}
	}
	if config.Features.TakesReviews() {
		server, err := newIntake(ctx, config, hub.clientset, certificates, handover)
		if err != nil {
			return nil, err
		}
		settings.WebhookServer = server
	}
	mgr, err := ctrl.NewManager(config.REST, settings)
	if err != nil {
		return nil, fmt.Errorf("setting up the gateway: %w", err)
	}
	return mgr, mgr.AddHealthzCheck("ping", healthz.Ping)
}

type controller interface {
	SetupWithManager(ctrl.Manager) error
}

func setUp(mgr ctrl.Manager, controllers []controller) error {
	for _, c := range controllers {
		if err := c.SetupWithManager(mgr); err != nil {
			return fmt.Errorf("setting up a controller: %w", err)
		}
	}
	return nil
}

// everywhere is a Runnable that runs in every replica, leader or not.
type everywhere func(context.Context) error

func (e everywhere) Start(ctx context.Context) error { return e(ctx) }

func (e everywhere) NeedLeaderElection() bool { return false }

// ignoreEnd drops errors that the shutdown causes.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		//lint:ignore nilerr The shutdown caused the error.
		return nil
	}
	return err
}
