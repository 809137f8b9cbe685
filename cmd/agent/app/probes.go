// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// serveProbes serves health and metrics before registration: /readyz reports why an agent cannot
// register.
func (a *agent) serveProbes(ctx context.Context) error {
	probes := http.NewServeMux()
	probes.Handle("/livez", http.StripPrefix("/livez", &healthz.Handler{Checks: map[string]healthz.Checker{"ping": healthz.Ping}}))
	probes.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := a.enroller.Ready(); err != nil {
			http.Error(w, "not registered: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return listenAndServe(ctx, a.Process.HealthProbeBindAddress, probes) })
	if a.Process.MetricsBindAddress != "0" {
		exported := http.NewServeMux()
		exported.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
		group.Go(func() error { return listenAndServe(ctx, a.Process.MetricsBindAddress, exported) })
	}
	return group.Wait()
}

func listenAndServe(ctx context.Context, address string, handler http.Handler) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", address, err)
	}
	return serve(ctx, listener, handler)
}
