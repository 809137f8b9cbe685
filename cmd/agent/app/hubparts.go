// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// How often the hub is asked for what it may have or not: soon at first, then rarely, since most
// hubs have none of it and there are many agents.
const (
	hubFirstAsk  = 5 * time.Second
	hubLatestAsk = 5 * time.Minute
)

// hubPart is what an agent does for hubs that have kinds of a group that many have not.
type hubPart struct {
	// undone begins the sentence that says what stands against it.
	undone string
	// group has to be served by the hub before anything else is asked of it.
	group string
	// try returns what stands against it, nil when nothing does.
	try func(ctx context.Context) error
	// serve does it until the context ends.
	serve func(ctx context.Context) error
}

// serveParts does each of them from when nothing stands against it. A hub that has none of their
// groups is asked with one request for all of them, now and then, and nothing is watched.
func serveParts(ctx context.Context, hubConfig *rest.Config, parts ...hubPart) error {
	asking, err := discovery.NewDiscoveryClientForConfig(hubConfig)
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	awaitHub(ctx, hubLatestAsk, func() error {
		ready, waiting, against := askForParts(ctx, asking.RESTClient(), parts)
		for _, part := range ready {
			group.Go(func() error { return part.serve(ctx) })
		}
		parts = waiting
		return against
	})
	return group.Wait()
}

// askForParts asks the hub once. Of the parts that have to wait it returns what stands against them.
func askForParts(ctx context.Context, hub rest.Interface, parts []hubPart) (ready, waiting []hubPart, against error) {
	served, err := groupsOf(ctx, hub)
	if err != nil {
		return nil, parts, fmt.Errorf("asking the hub what it serves: %w", err)
	}
	var obstacles []error
	for _, part := range parts {
		obstacle := fmt.Errorf("the hub does not serve %s", part.group)
		if served.Has(part.group) {
			obstacle = part.try(ctx)
		}
		if obstacle == nil {
			ready = append(ready, part)
			continue
		}
		waiting = append(waiting, part)
		obstacles = append(obstacles, fmt.Errorf("%s: %w", part.undone, obstacle))
	}
	return ready, waiting, utilerrors.NewAggregate(obstacles)
}

// groupsOf are the groups of APIs that a hub has. A discovery client would ask for them twice, at
// /api as well.
func groupsOf(ctx context.Context, hub rest.Interface) (sets.Set[string], error) {
	list := &metav1.APIGroupList{}
	if err := hub.Get().AbsPath("/apis").Do(ctx).Into(list); err != nil {
		return nil, err
	}
	names := sets.New[string]()
	for i := range list.Groups {
		names.Insert(list.Groups[i].Name)
	}
	return names, nil
}

// awaitHub tries until nothing stands against what is tried, soon at first and then rarely; it
// returns false if the context ends before. What stands against it is logged.
func awaitHub(ctx context.Context, rarest time.Duration, try func() error) bool {
	last := ""
	for pause := hubFirstAsk; ; pause = min(2*pause, rarest) {
		err := try()
		if err == nil {
			return true
		}
		if ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			log.FromContext(ctx).V(1).Info("Waiting for the hub: " + last)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}
