// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	addons "fleetgate.io/fleetgate/pkg/addon/hub"
	"fleetgate.io/fleetgate/pkg/addon/hub/fleetagent"
	"fleetgate.io/fleetgate/pkg/addon/hub/template"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/importer"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/kube/hash"
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
	if g.Features.ServesOCM(options.OCMRegistration) && g.Features.Serves(options.APIFleet) && g.Features.Serves(options.APIRancher) {
		var err error
		if serving.Delivered, err = g.deliveredAgents(mgr); err != nil {
			return err
		}
		serving.RegistrationNamespace = g.Registration.First()
	}
	return addons.SetupWithManager(ctx, mgr, serving)
}

// deliveredAgents are the agents that klusterlets install.
type deliveredAgents struct {
	*importer.Delivered
	members membermirror.Members
}

var _ fleetagent.Agents = deliveredAgents{}

func (g *gateway) deliveredAgents(mgr ctrl.Manager) (fleetagent.Agents, error) {
	chart, err := agentChart()
	if err != nil {
		return nil, err
	}
	installer := g.agentInstaller(mgr, chart)
	return deliveredAgents{&importer.Delivered{Reconciler: installer, ChartHash: hash.Of(chart.Package)}, membermirror.Members{Hub: mgr.GetClient()}}, nil
}

// MemberOf implements fleetagent.Agents.
func (d deliveredAgents) MemberOf(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*clusterv1beta1.MemberCluster, error) {
	return registration.MemberOf(ctx, d.Client, cluster)
}

// Mirrors implements fleetagent.Agents.
func (d deliveredAgents) Mirrors(ctx context.Context, cluster *clusterv1.ManagedCluster) (bool, error) {
	return d.members.IsMember(ctx, cluster)
}
