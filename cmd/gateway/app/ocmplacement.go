// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/placement"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler"
)

// ocmPlacementWorkers is the number of Placements that are decided at a time. Workers mostly wait
// for the hub.
const ocmPlacementWorkers = 16

// addOCMPlacement decides for Open Cluster Management's Placements, in the leader.
func (g *gateway) addOCMPlacement(_ context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) || !g.Features.ServesOCM(options.OCMPlacement) {
		return nil
	}
	return placement.SetupDecisions(mgr, clock.RealClock{}, ocmPlacementWorkers, metrics.Registry)
}

// debugPlacements explains the decisions of Placements, in every replica. It returns nil if none
// are decided here.
func (g *gateway) debugPlacements() func(authorizer.UnconditionalAuthorizer) http.Handler {
	if !g.Features.ServesOCM(options.OCMPlacement) {
		return nil
	}
	return func(may authorizer.UnconditionalAuthorizer) http.Handler {
		return &scheduler.Debugger{Reader: g.direct, Clock: clock.RealClock{}, May: may, User: apirequest.UserFrom}
	}
}

// addDebugServer serves the explanations of Placements where the gateway proxies to no member, and
// therefore has no other endpoint of its own.
func (g *gateway) addDebugServer() error {
	debug := g.debugPlacements()
	if debug == nil || !g.Features.Runs(options.ComponentProxy) {
		return nil
	}
	config := apiserver.Config{Hub: g.REST, Address: g.Serving.Listen(g.Serving.SecurePort), Certificate: g.certificates, Debug: debug}
	config.Spans = g.spans
	return g.manager.Add(everywhere(func(ctx context.Context) error {
		if err := g.certificates.WaitForFirst(ctx); err != nil {
			return ignoreEnd(ctx, err)
		}
		server, err := config.NewDebugServer(ctx)
		if err != nil {
			return ignoreEnd(ctx, err)
		}
		return server.Run(ctx)
	}))
}
