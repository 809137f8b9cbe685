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
	"fleetgate.io/fleetgate/pkg/work/definitions"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifestwork"
)

// How often the hub is asked whether it has ManifestWorks for this cluster, and what sets want of
// it: soon at first, then rarely, since most hubs have none and there are many agents.
const (
	hubFirstAsk  = 5 * time.Second
	hubLatestAsk = 5 * time.Minute
	// worksOnlyAsk is for an agent that does nothing else.
	worksOnlyAsk = 5 * time.Second
)

// worksOnly is who an agent is that applies ManifestWorks and does nothing else: nobody
// whom the hub would have to know otherwise.
type worksOnly struct {
	member string
	hub    *rest.Config
	// obstacle is what stands against applying ManifestWorks; nil if nothing does.
	obstacle atomic.Pointer[error]
}

var _ identity = (*worksOnly)(nil)

func newWorksOnly(member string, hub *rest.Config) *worksOnly {
	w := &worksOnly{member: member, hub: hub}
	w.stopped(errors.New("the hub was not asked yet for ManifestWorks"))
	return w
}

func (w *worksOnly) stopped(by error) { w.obstacle.Store(&by) }

// Run waits until the context ends: there is nothing to keep.
func (w *worksOnly) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Ready is nil while ManifestWorks are applied.
func (w *worksOnly) Ready() error { return *w.obstacle.Load() }

// Member is the cluster's name, as it was given.
func (w *worksOnly) Member(context.Context) (string, error) { return w.member, nil }

// Token is not asked for: this agent has no tunnel.
func (w *worksOnly) Token(context.Context) (string, error) { return "", nil }

// HubConfig is how to reach the hub, as it was given.
func (w *worksOnly) HubConfig(context.Context) (*rest.Config, error) {
	return rest.CopyConfig(w.hub), nil
}

// Moved is nil: the way to the hub stays what it is.
func (w *worksOnly) Moved() <-chan struct{} { return nil }

// Mover is nil: whoever runs this agent says where the hub is.
func (w *worksOnly) Mover() func(ctx context.Context, server string, ca []byte) error { return nil }

// Origin is the URL of the hub.
func (w *worksOnly) Origin() string { return w.hub.Host }

// serveWorksOnly applies ManifestWorks and does nothing else.
func (a *agent) serveWorksOnly(ctx context.Context, only *worksOnly) error {
	reached, err := engine.Reach(a.Member)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return reached.Watcher.Run(ctx) })
	group.Go(func() error {
		return a.serveManifestWorks(ctx, reached, only.hub, only.member, worksOnlyAsk, keeping{}, only.stopped)
	})
	return group.Wait()
}

// serveManifestWorks applies the ManifestWorks in the namespace on the hub that has the
// cluster's name, from when the hub has that kind and the agent may watch it there. It
// asks for that at least every rarest. told hears what stands against it, nil when nothing
// does any more.
func (a *agent) serveManifestWorks(ctx context.Context, reached *engine.Member, hubConfig *rest.Config, cluster string, rarest time.Duration, k keeping, told func(error)) error {
	hub, err := client.New(hubConfig, client.Options{Scheme: a.scheme})
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	prepared := awaitHub(ctx, "No ManifestWorks are applied: ", rarest, func() error {
		err := a.tryPrepareWorks(ctx, hub, cluster)
		if err != nil {
			told(err)
		}
		return err
	})
	if !prepared {
		return nil
	}
	mgr, err := a.newHubManager(hubConfig, inNamespace(cluster), func() {})
	if err != nil {
		return err
	}
	origin := cmp.Or(a.enroller.Origin(), hubConfig.Host)
	if err := a.addManifestWorks(ctx, mgr, reached, origin, cluster, k); err != nil {
		return fmt.Errorf("setting up the ManifestWorks of cluster %q: %w", cluster, err)
	}
	log.FromContext(ctx).Info("Applying ManifestWorks", "namespace", cluster, "hubHash", manifestwork.HubHash(origin))
	told(nil)
	return mgr.Start(ctx)
}

// awaitHub tries until nothing stands against what is tried, soon at first and then rarely; it
// returns false if the context ends before. What stands against it is logged, behind a sentence
// that says what it is that is not done.
func awaitHub(ctx context.Context, undone string, rarest time.Duration, try func() error) bool {
	last := ""
	for pause := hubFirstAsk; ; pause = min(2*pause, rarest) {
		err := try()
		if err == nil {
			return true
		}
		if ctx.Err() == nil && err.Error() != last {
			last = err.Error()
			log.FromContext(ctx).V(1).Info(undone + last)
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// tryPrepareWorks returns what stands against applying ManifestWorks.
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
		Cluster: cluster, HubURL: url, AgentID: a.AgentID, Reached: reached,
		House: []string{a.Namespace, a.AccountNamespace}, RawFeedback: a.RawFeedback, EvictionGrace: a.EvictionGrace,
		Impersonate: a.Executor == executorImpersonate, Holds: k.holds, Epochs: k.epochs,
	})
	if err != nil {
		return err
	}
	return works.SetupWithManager(ctx, hub)
}
