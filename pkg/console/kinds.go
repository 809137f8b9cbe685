// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"slices"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// kindsAgain is how long it is remembered which kinds there are: people change what they look
// for more often than members change their kinds.
const kindsAgain = 30 * time.Second

// usual are the kinds that one looks for most, by the names that they have without a group. They
// stand for all where nobody can be asked.
var usual = []hub.Kind{
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

// pods are what is looked for unless somebody says.
const pods = "pods"

// fleetKinds are the kinds that the fleet had when it was asked last.
type fleetKinds struct {
	// mu guards the others.
	mu   sync.Mutex
	at   time.Time
	more []hub.Kind
	// err is why it could not be asked at that time; more is of an earlier one then.
	err error
}

// kinds are those besides the usual ones that can be looked for, by name. The error says why the
// fleet could not be asked: those that it had before are there all the same, and nobody waits
// for it again at each page.
func (c *Console) kinds(ctx context.Context) ([]hub.Kind, error) {
	c.known.mu.Lock()
	at, more, err := c.known.at, c.known.more, c.known.err
	c.known.mu.Unlock()
	if !at.IsZero() && c.Clock.Since(at) < kindsAgain {
		return more, err
	}
	all, err := c.Hub.FleetKinds(ctx)
	if ctx.Err() != nil {
		return more, ctx.Err() // Who asked has gone, which says nothing of the fleet.
	}
	if err == nil {
		more = slices.DeleteFunc(all, func(k hub.Kind) bool {
			return slices.ContainsFunc(usual, func(u hub.Kind) bool { return u.Path == k.Path && u.Resource == k.Resource })
		})
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	c.known.at, c.known.more, c.known.err = c.Clock.Now(), more, err
	return more, err
}

// named is the kind of that name, and whether there is one.
func named(kinds []hub.Kind, name string) (hub.Kind, bool) {
	if at := slices.IndexFunc(kinds, func(k hub.Kind) bool { return k.Name == name }); at >= 0 {
		return kinds[at], true
	}
	return hub.Kind{}, false
}
