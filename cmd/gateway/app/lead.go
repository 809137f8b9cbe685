// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"

	"fleetgate.io/fleetgate/pkg/leader"
)

const (
	// leadGrace is how long reconciles under way may take to end, which is less than all
	// that stops with them.
	leadGrace = shutdownGrace - 5*time.Second
	// cacheSync is how long a hub may take to list what the leader follows.
	cacheSync = 10 * time.Minute
)

// addLeader runs what one replica does: controllers, and the rest of --install.
func (g *gateway) addLeader(context.Context) error {
	runner := &leader.Runner{Name: g.Parts.LeaseName(), Lead: g.lead}
	if g.Process.LeaderElect {
		lock, err := leader.NewLock(g.REST, g.Hub.Namespace, g.Parts.LeaseName(), identity())
		if err != nil {
			return err
		}
		runner.Lock = lock
	}
	return g.manager.Add(runner)
}

// lead runs the leader's part until it is another's. It has a manager of its own for each
// time: a controller cannot be started twice.
func (g *gateway) lead(ctx context.Context) error {
	settings := managerOptions(g.hub, &g.Parts, leadGrace)
	settings.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return g.manager.GetRESTMapper(), nil }
	// Their names are those of the time before.
	again := true
	settings.Controller = config.Controller{SkipNameValidation: &again, CacheSyncTimeout: cacheSync}
	mgr, err := ctrl.NewManager(g.REST, settings)
	if err != nil {
		return fmt.Errorf("setting up what the leader does: %w", err)
	}
	for _, add := range []func(context.Context, ctrl.Manager) error{
		g.addInstall,
		g.addPolicyControllers,
		g.addMemberControllers,
		g.addPlacement,
		g.addKlusterlets,
		g.addOCM,
		g.addOCMPlacement,
		g.addStandardDecisions,
	} {
		if err := add(ctx, mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}
