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

	"fleetgate.io/fleetgate/pkg/work/engine"
)

// The interval between requests for optional kinds of the hub. It starts short and grows, because
// most hubs never serve these kinds and a fleet has many agents.
const (
	hubFirstRetry = 5 * time.Second
	hubLastRetry  = 5 * time.Minute
)

// hubPart is a part of the agent that works with a group which many hubs do not serve.
type hubPart struct {
	// undone starts the log message about a part that cannot run.
	undone string
	// group must be served by the hub before try is called.
	group string
	// try returns why the part cannot run, or nil.
	try func(ctx context.Context) error
	// serve runs the part until the context ends.
	serve func(ctx context.Context) error
}

// hubParts are the parts that serve Open Cluster Management's kinds for a member.
func (a *agent) hubParts(reached *engine.Member, hubConfig *rest.Config, member string, k keeping) ([]hubPart, error) {
	works, err := a.manifestWorks(reached, hubConfig, member, k)
	if err != nil {
		return nil, err
	}
	namespaces, err := a.namespacesOfSets(hubConfig, member)
	if err != nil {
		return nil, err
	}
	addOns, err := a.addOns(hubConfig, member)
	if err != nil {
		return nil, err
	}
	if !a.Member.ResourceScores {
		namespaces.serve = a.withoutScores(hubConfig, member, namespaces.serve)
		return []hubPart{works, namespaces, addOns}, nil
	}
	scores, err := a.scores(hubConfig, member)
	return []hubPart{works, namespaces, addOns, scores}, err
}

// serveParts runs each part as soon as it can run. One request discovers the groups for all parts,
// and nothing is watched on a hub that serves none of them.
func serveParts(ctx context.Context, hubConfig *rest.Config, parts ...hubPart) error {
	discoverer, err := discovery.NewDiscoveryClientForConfig(hubConfig)
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	group, ctx := errgroup.WithContext(ctx)
	awaitHub(ctx, hubLastRetry, func() error {
		ready, waiting, reason := discoverParts(ctx, discoverer.RESTClient(), parts)
		for _, part := range ready {
			group.Go(func() error { return part.serve(ctx) })
		}
		parts = waiting
		return reason
	})
	return group.Wait()
}

// discoverParts requests the groups of the hub once. It also returns why the waiting parts cannot run.
func discoverParts(ctx context.Context, hub rest.Interface, parts []hubPart) (ready, waiting []hubPart, reason error) {
	served, err := groupsOf(ctx, hub)
	if err != nil {
		return nil, parts, fmt.Errorf("discovering what the hub serves: %w", err)
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

// groupsOf lists the API groups of a hub with one request. A discovery client would also request
// /api.
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

// awaitHub retries until try succeeds. It logs each new reason for waiting.
func awaitHub(ctx context.Context, last time.Duration, try func() error) bool {
	report := func(reason string) { log.FromContext(ctx).V(1).Info("Waiting for the hub: " + reason) }
	return retry(ctx, hubFirstRetry, last, report, try)
}

// retry calls try until it succeeds, and reports each new reason for waiting. The pause doubles from
// first to last. It returns false if the context ends first.
func retry(ctx context.Context, first, last time.Duration, report func(reason string), try func() error) bool {
	reported := ""
	for pause := first; ; pause = min(2*pause, last) {
		err := try()
		if err == nil {
			return true
		}
		if ctx.Err() == nil && err.Error() != reported {
			reported = err.Error()
			report(reported)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}
