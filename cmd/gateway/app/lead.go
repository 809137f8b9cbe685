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

// cacheSync is how long the hub can take to list the objects that the leader watches.
const cacheSync = 10 * time.Minute

// addLeader adds the leader-elected controllers, and the rest of --install.
func (g *gateway) addLeader(context.Context) error {
	// Report a bad signer file at startup. After that, only the hub can make the leader's part
	// fail.
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

// isForeign reports errors that only a person can fix: the hub serves another product's API of the
// same name, which does not lead to the gateway.
func isForeign(err error) bool {
	var foreign *install.ForeignObjectError
	return errors.As(err, &foreign)
}

// lead runs the leader's part until another replica becomes the leader. It creates a manager for
// each term, because a controller cannot be started twice.
func (g *gateway) lead(ctx context.Context) error {
	settings := whileHolding(ctx, managerOptions(g.hub, &g.Features, leader.Grace))
	settings.MapperProvider = func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return g.manager.GetRESTMapper(), nil }
	// Controllers of the previous term had the same names.
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
		g.addOCMAddOns,
		g.addStandardDecisions,
	} {
		if err := add(ctx, mgr); err != nil {
			return err
		}
	}
	return mgr.Start(ctx)
}

// whileHolding stops all parts of a manager with the lease's context. They stop at the same time,
// and do not wait for replies of the hub.
func whileHolding(ctx context.Context, settings ctrl.Options) ctrl.Options {
	settings.BaseContext = func() context.Context { return ctx }
	settings.NewCache = newTermCache
	return settings
}

// termCache is a cache whose start ends with the term. A manager that stops during the initial list
// would otherwise wait for it in a loop without a pause, as long as the hub does not reply.
type termCache struct{ cache.Cache }

func newTermCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	made, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the cache of leader-elected controllers: %w", err)
	}
	return termCache{made}, nil
}

// WaitForCacheSync also returns true when the term has ended, so that the caller stops waiting.
func (c termCache) WaitForCacheSync(ctx context.Context) bool {
	return c.Cache.WaitForCacheSync(ctx) || ctx.Err() != nil
}
