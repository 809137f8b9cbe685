// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/agent/definitions"
	"fleetgate.io/fleetgate/pkg/work/agent/manifestwork"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

// worksOnlyRetry is the longest pause between requests of an agent that applies only ManifestWorks.
const worksOnlyRetry = 5 * time.Second

// worksOnly is the identity of an agent that applies only ManifestWorks. The hub needs no other
// registration of it.
type worksOnly struct {
	member string
	hub    *rest.Config
	// obstacle is why ManifestWorks are not applied; nil if they are.
	obstacle atomic.Pointer[error]
}

var _ identity = (*worksOnly)(nil)

func newWorksOnly(member string, hub *rest.Config) *worksOnly {
	w := &worksOnly{member: member, hub: hub}
	w.stopped(errors.New("the agent has not checked yet whether the hub serves ManifestWorks"))
	return w
}

func (w *worksOnly) stopped(by error) { w.obstacle.Store(&by) }

// Run waits until the context ends, because there are no credentials to renew.
func (w *worksOnly) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready returns nil while ManifestWorks are applied.
func (w *worksOnly) Ready() error { return *w.obstacle.Load() }

// Unstored returns nil, because this agent stores no token.
func (w *worksOnly) Unstored() error { return nil }

// Member returns the configured name of the cluster.
func (w *worksOnly) Member(context.Context) (string, error) { return w.member, nil }

// Token returns nothing, because this agent has no tunnel.
func (w *worksOnly) Token(context.Context) (string, error) { return "", nil }

// HubConfig returns the configured connection to the hub.
func (w *worksOnly) HubConfig(context.Context) (*rest.Config, error) {
	return rest.CopyConfig(w.hub), nil
}

// Moved returns nil, because the hub's address does not change.
func (w *worksOnly) Moved() <-chan struct{} { return nil }

// Mover returns nil: the user who runs this agent configures the hub's address.
func (w *worksOnly) Mover() func(ctx context.Context, server string, ca []byte) error { return nil }

// Origin returns the URL of the hub.
func (w *worksOnly) Origin() string { return w.hub.Host }

// serveWorksOnly runs an agent that applies only ManifestWorks.
func (a *agent) serveWorksOnly(ctx context.Context, only *worksOnly) error {
	reached, err := engine.NewMember(a.MemberREST)
	if err != nil {
		return err
	}
	works, err := a.manifestWorks(reached, only.hub, only.member, keeping{})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return reached.Watcher.Run(ctx) })
	group.Go(func() error {
		shown := awaitHub(ctx, worksOnlyRetry, func() error {
			err := works.try(ctx)
			only.stopped(err)
			return err
		})
		if !shown {
			return nil
		}
		return works.serve(ctx)
	})
	return group.Wait()
}

// manifestWorks applies the ManifestWorks in the hub's namespace with the cluster's name, once the
// hub serves the kind and allows the agent to watch it there.
func (a *agent) manifestWorks(reached *engine.Member, hubConfig *rest.Config, cluster string, k keeping) (hubPart, error) {
	hub, err := client.New(hubConfig, client.Options{Scheme: a.scheme})
	if err != nil {
		return hubPart{}, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	return hubPart{
		undone: "no ManifestWorks are applied", group: workv1.GroupName,
		try:   func(ctx context.Context) error { return a.tryPrepareWorks(ctx, hub, cluster) },
		serve: func(ctx context.Context) error { return a.serveManifestWorks(ctx, reached, hubConfig, cluster, k) },
	}, nil
}

func (a *agent) serveManifestWorks(ctx context.Context, reached *engine.Member, hubConfig *rest.Config, cluster string, k keeping) error {
	mgr, err := a.newHubManager(hubConfig, inNamespace(cluster), func() {})
	if err != nil {
		return err
	}
	origin := cmp.Or(a.enroller.Origin(), hubConfig.Host)
	if err := a.addManifestWorks(ctx, mgr, reached, origin, cluster, k); err != nil {
		return fmt.Errorf("setting up the ManifestWorks of cluster %q: %w", cluster, err)
	}
	log.FromContext(ctx).Info("Applying ManifestWorks", "namespace", cluster, "hubHash", manifestwork.HubHash(origin))
	return mgr.Start(ctx)
}

// tryPrepareWorks returns why ManifestWorks cannot be applied.
func (a *agent) tryPrepareWorks(ctx context.Context, hub client.Client, cluster string) error {
	err := hub.List(ctx, &workv1.ManifestWorkList{}, client.InNamespace(cluster), client.Limit(1))
	switch {
	case apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return fmt.Errorf("the hub has no kind ManifestWork in %s: %w", workv1.GroupVersion, err)
	case err != nil:
		return fmt.Errorf("the hub does not show the ManifestWorks in namespace %q to this agent: %w", cluster, err)
	}
	return definitions.Ensure(ctx, a.direct, workv1.GroupName)
}

func (a *agent) addManifestWorks(ctx context.Context, hub ctrl.Manager, reached *engine.Member, url, cluster string, k keeping) error {
	works, err := manifestwork.New(manifestwork.Options{
		Cluster: cluster, HubURL: url, AgentID: a.Works.AgentID, MemberAPI: reached,
		ReservedNamespaces: []string{a.Member.Namespace, a.Accounts.Namespace}, RawFeedback: a.Works.RawFeedback, EvictionGrace: a.Works.EvictionGracePeriod.Duration,
		Impersonate: a.Impersonates(), Retention: k.tracker, Epochs: k.epochs, Tuning: engine.Tuning{Removal: a.Works.RemovalWait.Duration},
		OnlyLabelledNamespaces: a.Works.OnlyLabelledNamespaces,
	})
	if err != nil {
		return err
	}
	return works.SetupWithManager(ctx, hub)
}
