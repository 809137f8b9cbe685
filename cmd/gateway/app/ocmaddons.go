// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	addons "fleetgate.io/fleetgate/pkg/addon/hub"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/placement/ocm/replicaset"
)

// addOCMAddOns serves add-ons of Open Cluster Management, in the leader. Members are shown with the
// features of their agents where they are mirrored as ManagedClusters.
func (g *gateway) addOCMAddOns(ctx context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) || !g.Features.ServesOCM(options.OCMAddOns) {
		return nil
	}
	serving := addons.Options{
		Clock: clock.RealClock{}, Workers: ocmWorkers, Agents: klusterlet.AgentsOf(nil), Transform: g.common.Transform, HashOf: replicaset.HashOf,
		Authority: template.Authority{Parse: klusterlet.ParseAddOn, Sign: klusterlet.SignAddOn(clock.RealClock{})},
	}
	if g.Features.ServesOCM(options.OCMRegistration) && g.Features.Serves(options.APIFleet) {
		serving.Agents = klusterlet.AgentsOf(membermirror.Members{Hub: mgr.GetClient()})
	}
	if g.Features.ServesOCM(options.OCMRegistration) && g.Features.Serves(options.APIGateway) {
		serving.Members = membermirror.Members{Hub: mgr.GetClient()}
	}
	return addons.SetupWithManager(ctx, mgr, serving)
}
