// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/pkg/kube/writepriority"
)

// registrationKinds are the CRDs of part OCMRegistration. Other parts serve other kinds of the
// group, or nothing serves them.
func registrationKinds() []string {
	return []string{
		"managedclusters.cluster.open-cluster-management.io",
		"managedclustersets.cluster.open-cluster-management.io",
		"managedclustersetbindings.cluster.open-cluster-management.io",
	}
}

// addKlusterlets registers clusters with agents of Open Cluster Management, in the leader.
func (g *gateway) addKlusterlets(_ context.Context, mgr ctrl.Manager) error {
	if !g.Features.Runs(options.ComponentControllers) || !g.Features.ServesOCM(options.OCMRegistration) {
		return nil
	}
	signer, err := g.signer()
	if err != nil {
		return err
	}
	if g.Install.Enabled {
		bootstrap := func(ctx context.Context) error {
			return klusterlet.EnsureBootstrap(ctx, g.direct, g.Hub.URL, g.HubCA)
		}
		if err := mgr.Add(manager.RunnableFunc(bootstrap)); err != nil {
			return err
		}
	}
	if err := clusterset.SetupWithManager(mgr); err != nil {
		return err
	}
	joining := klusterlet.Options{
		Users: g.Klusterlets.AutoApprovedUsers, Signer: signer, ForceDeleteWait: g.Members.ForceDeleteWaitTime.Duration,
		Labels: g.Klusterlets.Labels, Workers: memberWorkers, Rights: g.order.Client(mgr.GetClient(), writepriority.Always(writepriority.Entry)),
		Transform: g.common.Transform,
	}
	if shown, err := g.showMembers(mgr); err != nil {
		return err
	} else if shown {
		joining.Members = membermirror.Members{Hub: mgr.GetClient()}
	}
	return klusterlet.SetupWithManager(g.REST, mgr, joining)
}

// showMembers mirrors members as ManagedClusters if the fleet API is served, and reports whether it
// does.
func (g *gateway) showMembers(mgr ctrl.Manager) (bool, error) {
	if !g.Features.Serves(options.APIFleet) {
		return false, nil
	}
	return true, (&membermirror.Reconciler{Client: mgr.GetClient(), Workers: memberWorkers}).SetupWithManager(mgr)
}

// signer signs certificates of klusterlets. It is nil if another component signs.
func (g *gateway) signer() (*klusterlet.Signer, error) {
	if g.Klusterlets.SignerCertFile == "" {
		return nil, nil
	}
	certificate, err := os.ReadFile(g.Klusterlets.SignerCertFile)
	if err != nil {
		return nil, fmt.Errorf("reading klusterlets.signerCertFile: %w", err)
	}
	key, err := os.ReadFile(g.Klusterlets.SignerKeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading klusterlets.signerKeyFile: %w", err)
	}
	return klusterlet.NewSigner(certificate, key, clock.RealClock{})
}
