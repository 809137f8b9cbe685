// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// kindsTTL is how long the kinds of the fleet are cached: users search more often than members change
// their kinds.
const kindsTTL = 30 * time.Second

// commonKinds are searched most often. Their names have no group. They are available even if the fleet
// cannot be read.
var commonKinds = []overview.Kind{
	{Name: "configmaps", Path: "api/v1", Resource: "configmaps", Namespaced: true},
	{Name: "daemonsets", Path: "apis/apps/v1", Resource: "daemonsets", Namespaced: true},
	{Name: "deployments", Path: "apis/apps/v1", Resource: "deployments", Namespaced: true},
	{Name: "events", Path: "api/v1", Resource: "events", Namespaced: true},
	{Name: "ingresses", Path: "apis/networking.k8s.io/v1", Resource: "ingresses", Namespaced: true},
	{Name: "jobs", Path: "apis/batch/v1", Resource: "jobs", Namespaced: true},
	{Name: "nodes", Path: "api/v1", Resource: "nodes"},
	{Name: "persistentvolumeclaims", Path: "api/v1", Resource: "persistentvolumeclaims", Namespaced: true},
	{Name: "pods", Path: "api/v1", Resource: "pods", Namespaced: true},
	{Name: "services", Path: "api/v1", Resource: "services", Namespaced: true},
	{Name: "statefulsets", Path: "apis/apps/v1", Resource: "statefulsets", Namespaced: true},
}

// pods is the default kind.
const pods = "pods"

// fleetKinds caches the kinds of the fleet.
type fleetKinds struct {
	// mu guards the others.
	mu    sync.Mutex
	at    time.Time
	other []overview.Kind
	// err is why they could not be read at that time; other is from an earlier time then.
	err error
}

// kinds returns the kinds besides the common ones, by name. If the fleet cannot be read, it returns
// the error together with the previous kinds. Errors are cached, too, so that pages do not wait
// for the fleet each time.
func (c *Console) kinds(ctx context.Context) ([]overview.Kind, error) {
	c.known.mu.Lock()
	at, other, err := c.known.at, c.known.other, c.known.err
	c.known.mu.Unlock()
	if !at.IsZero() && c.Clock.Since(at) < kindsTTL {
		return other, err
	}
	all, err := c.Hub.FleetKinds(ctx)
	if ctx.Err() != nil {
		return other, ctx.Err() // The browser closed the request: that is not an error of the fleet.
	}
	if err == nil {
		other = slices.DeleteFunc(all, func(k overview.Kind) bool {
			return slices.ContainsFunc(commonKinds, func(u overview.Kind) bool { return u.Path == k.Path && u.Resource == k.Resource })
		})
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	c.known.at, c.known.other, c.known.err = c.Clock.Now(), other, err
	return other, err
}

func named(kinds []overview.Kind, name string) (overview.Kind, bool) {
	if at := slices.IndexFunc(kinds, func(k overview.Kind) bool { return k.Name == name }); at >= 0 {
		return kinds[at], true
	}
	return overview.Kind{}, false
}
