// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"

	"fleetgate.io/fleetgate/pkg/controller/leader"
	"fleetgate.io/fleetgate/pkg/install"
)

// cacheSync is how long a hub may take to list what the leader follows.
const cacheSync = 10 * time.Minute

// addLeader runs what one replica does: controllers, and the rest of --install.
func (g *gateway) addLeader(context.Context) error {
	// What is wrong with a file is told before anything is led: then only the hub can fail.
	if _, err := g.signer(); err != nil {
		return err
	}
	runner := &leader.Runner{Name: g.Features.LeaseName(), Lead: g.lead, IsFinal: isForeign}
	if g.Process.LeaderElect {
		lock, err := leader.NewLock(g.REST, g.Hub.Namespace, g.Features.LeaseName(), replicaIdentity())
		if err != nil {
			return err
		}
		runner.Lock = lock
	}
	return g.manager.Add(runner)
}

// isForeign is true of what only a person can mend while the gateway leads: the hub serves
// another product's API of the same name, and the gateway is not what leads to it.
func isForeign(err error) bool {
	var foreign *install.ForeignObjectError
	return errors.As(err, &foreign)
}

// lead runs the leader's part until it is another's. It has a manager of its own for each
// time: a controller cannot be started twice.
func (g *gateway) lead(ctx context.Context) error {
	settings := whileHolding(ctx, managerOptions(g.hub, &g.Features, leader.Grace))
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

// whileHolding has all parts of a manager end with a context, which ends with the lease: not
// one after the other, and not once the hub has answered what they ask.
func whileHolding(ctx context.Context, settings ctrl.Options) ctrl.Options {
	settings.BaseContext = func() context.Context { return ctx }
	settings.NewCache = newTermCache
	return settings
}

// termCache is a cache whose start ends with the term. A manager that is stopped while its
// caches are read goes on to wait for them, in a loop without a pause, for as long as the hub
// does not answer.
type termCache struct{ cache.Cache }

func newTermCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	made, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the cache of what is led: %w", err)
	}
	return termCache{made}, nil
}

// WaitForCacheSync is true once there is nothing more to wait for.
func (c termCache) WaitForCacheSync(ctx context.Context) bool {
	return c.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}
