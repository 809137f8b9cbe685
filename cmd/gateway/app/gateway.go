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
	// shutdownGrace is how long requests and reconciles under way may take to end.
	shutdownGrace = 25 * time.Second
	// streamDrain is how much of it streams get that cannot be resumed, in tunnels and to
	// callers.
	streamDrain = 20 * time.Second
	// garbage is how much of it is collected, in percent of what is in use. Most of a gateway's
	// memory is what it knows of members; Go would have as much again be garbage, and to collect
	// at half of that costs some hundredths of the gateway's CPU time more.
	garbage = 50
)

// gateway is everything that the parts share, and is there before the first of them.
type gateway struct {
	*options.Config
	*hub
	certificates *serving.Certificates
	reviews      *webhook.Reviews
	manager      ctrl.Manager
	// members holds what the hub made for members.
	members cache.Cache
	// policies are nil where no ImmutabilityPolicies are served.
	policies *policySet
	spans    trace.TracerProvider
	// order is that of all writes of which there may be many at a time.
	order writepriority.Order
}

// Run runs the gateway until the context ends, or fails with a sentence that
// says what is in the way.
func Run(ctx context.Context, config *options.Config) error {
	if os.Getenv("GOGC") == "" { // Go's own variable goes before.
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
	// In any order: none needs what another one does.
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

// managerOptions are those of every manager; it serves nothing.
func managerOptions(hub *hub, parts *options.Features, grace time.Duration) ctrl.Options {
	return ctrl.Options{
		Scheme:                  hub.scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &grace,
		Cache:                   cache.Options{ByObject: withoutManifests(parts, &hub.common), DefaultTransform: hub.common.Transform},
		Client: client.Options{Cache: &client.CacheOptions{
			// Secrets are never cached as a whole: a typed read would start a watch
			// on every Secret of the hub.
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

// ignoreEnd drops the errors that come of stopping.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		//lint:ignore nilerr It is the end that it comes of.
		return nil
	}
	return err
}
