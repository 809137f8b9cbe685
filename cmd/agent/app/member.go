// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllercluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/agent/heartbeat"
	"fleetgate.io/fleetgate/pkg/cluster/agent/hubevents"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/rotator"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
	"fleetgate.io/fleetgate/pkg/work/agent/apply"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// serveMember returns nil when the hub has removed the member or the context ends. All parts have
// stopped then, because the hub would reject their requests. Only the tunnel can continue (keepTunnel).
func (a *agent) serveMember(ctx context.Context, hubConfig *rest.Config, member string, admission *enroll.Admission, connection *hubConnection) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	defer a.tunnelStatus.forget()
	hub, err := a.newHubManager(hubConfig, inNamespace(clusterv1beta1.MemberNamespace(member)), admission.Recheck)
	if err != nil {
		return err
	}
	reached, err := engine.NewMember(a.MemberREST)
	if err != nil {
		return err
	}
	a.retained.Set(0)
	retained := heartbeat.NewRetained(member, clock.RealClock{})
	keep := keeping{tracker: newTracker(a.retained, retained), epochs: retention.NewEpochs(hub.GetClient(), member)}
	addWorks := func(ctx context.Context, hub ctrl.Manager, member string) error {
		return a.addWorks(ctx, hub, member, reached, keep.tracker)
	}
	addTokens := func(_ context.Context, hub ctrl.Manager, member string) error { return a.addTokens(hub, member, keep) }
	var left atomic.Bool
	addHeartbeat := func(_ context.Context, hub ctrl.Manager, member string) error {
		return a.addHeartbeat(hub, member, heartbeat.Reconciler{Retained: retained, HubRestored: end, Left: func() {
			left.Store(true)
			end()
		}})
	}
	for _, add := range []func(context.Context, ctrl.Manager, string) error{addWorks, addHeartbeat, addTokens} {
		if err := add(serving, hub, member); err != nil {
			return fmt.Errorf("setting up the agent of member %q: %w", member, err)
		}
	}
	parts, err := a.hubParts(reached, hubConfig, member, keep)
	if err != nil {
		return err
	}
	group, serving := errgroup.WithContext(serving)
	group.Go(func() error {
		defer end()
		admission.AwaitDismissal(serving)
		return nil
	})
	group.Go(func() error { return hub.Start(serving) })
	group.Go(func() error { return a.keepCertificate(serving, hubConfig, member) })
	group.Go(func() error {
		return connection.keepTunnel(serving, func(ctx context.Context) error { return a.serveTunnel(ctx, hubConfig, member) })
	})
	group.Go(func() error { return serveParts(serving, hubConfig, parts...) })
	err = group.Wait()
	if left.Load() {
		a.withdraw(ctx, hubConfig)
	}
	return err
}

// withdraw cleans up a member that has left. It removes the hub's accounts, because the agent can
// no longer see the ManagedServiceAccounts that end with the member's namespace. It also removes
// the agent's certificate and the credentials of add-ons. Namespaces of the member's sets stay, marked as no longer wanted.
func (a *agent) withdraw(ctx context.Context, hubConfig *rest.Config) {
	const attempts = 5
	tokens := &rotator.Reconciler{Member: a.direct, AccountNamespace: a.Accounts.Namespace, AgentNamespace: a.Member.Namespace}
	for range attempts {
		err := errors.Join(tokens.Withdraw(ctx), a.forgetCertificate(ctx), a.addOnSecrets().Forget(ctx), a.managedNamespaces(nil, hubConfig).Release(ctx))
		if err == nil || ctx.Err() != nil {
			return
		}
		log.FromContext(ctx).Info("Could not remove all objects of the hub from the member; the rest is removed when the member joins that hub again", "error", err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(memberRetry):
		}
	}
}

// inNamespace limits a cache to one namespace of the hub.
func inNamespace(namespace string) cache.Options {
	managed := labels.SelectorFromSet(labels.Set{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue})
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		ByObject:          map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: managed}},
	}
}

// newHubManager returns a manager whose cache is limited to sees. It calls refused when the hub
// rejects a watch as unauthorized or forbidden.
func (a *agent) newHubManager(hub *rest.Config, sees cache.Options, refused func()) (ctrl.Manager, error) {
	grace, again := shutdownGrace, true
	sees.DefaultWatchErrorHandler = watchError(refused)
	config := rest.CopyConfig(hub)
	config.QPS = -1 // API Priority and Fairness on the hub limits the agent.
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                  a.scheme,
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		GracefulShutdownTimeout: &grace,
		// Each readmission of the member creates controllers with the same names.
		Controller: controllerconfig.Controller{SkipNameValidation: &again},
		Cache:      sees,
		Client: client.Options{Cache: &client.CacheOptions{
			// Read Secrets from the hub: a Secret that lost its label is not in the cache.
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", hub.Host, err)
	}
	return hubevents.Of(mgr)
}

// watchError does not log an error when the hub removes its member.
func watchError(refused func()) toolscache.WatchErrorHandlerWithContext {
	return func(ctx context.Context, r *toolscache.Reflector, err error) {
		if !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		log.FromContext(ctx).Info("The agent is not allowed to watch the member's objects on the hub; retrying", "reason", err.Error())
		refused()
	}
}

// addWorks applies the hub's Works. All families of works share reached.
func (a *agent) addWorks(ctx context.Context, hub ctrl.Manager, member string, reached *engine.Member, retained *retention.Tracker) error {
	if err := hub.Add(manager.RunnableFunc(reached.Watcher.Run)); err != nil {
		return fmt.Errorf("adding the watch on the member: %w", err)
	}
	works, err := apply.New(apply.Options{
		Member: member, HubName: a.Hub.Name, MemberAPI: reached, NamespacedApplier: a.Works.NamespacedApplier,
		ReservedNamespaces: []string{a.Member.Namespace, a.Accounts.Namespace}, Retention: retained, DeletesTakenOver: a.Works.DeleteTakenOver,
		OnlyLabelledNamespaces: a.Works.OnlyLabelledNamespaces, Tuning: engine.Tuning{Removal: a.Works.RemovalWait.Duration},
	})
	if err != nil {
		return err
	}
	return works.SetupWithManager(ctx, hub)
}

// addHeartbeat completes the reconciler that reports the member's status, and adds it.
func (a *agent) addHeartbeat(hub ctrl.Manager, name string, r heartbeat.Reconciler) error {
	member, err := metadata.NewForConfig(a.MemberREST)
	if err != nil {
		return fmt.Errorf("reaching the member at %s: %w", a.MemberREST.Host, err)
	}
	r.Claims = heartbeat.NewClaims(member, clock.RealClock{})
	if err := hub.Add(manager.RunnableFunc(r.Claims.Run)); err != nil {
		return fmt.Errorf("adding the watch on claims: %w", err)
	}
	if r.Namespaces, err = a.namespaces(hub, member); err != nil {
		return err
	}
	r.Hub, r.Member, r.Metadata, r.Name, r.Version = hub.GetClient(), a.clientset, member, name, version.Get()
	r.Server, r.ServerCA, r.Tunnel = a.MemberREST.Host, a.reportedCA(), a.tunnelStatus.reported
	r.Impersonation = func() string { return string(a.grants.Mode()) }
	r.HubName, r.Unstored = a.Hub.Name, a.enroller.Unstored
	if a.Member.ResourceScores {
		r.Counted = a.free.Set
	}
	r.Move, r.Clock = a.enroller.Mover(), clock.RealClock{}
	return r.SetupWithManager(hub)
}

// namespaces returns nil unless the collection of namespaces is enabled.
func (a *agent) namespaces(hub ctrl.Manager, member metadata.Interface) (*heartbeat.Namespaces, error) {
	if !a.Member.CollectNamespaces {
		return nil, nil
	}
	namespaces := heartbeat.NewNamespaces(member, clock.RealClock{})
	if err := hub.Add(manager.RunnableFunc(namespaces.Run)); err != nil {
		return nil, fmt.Errorf("adding the watch on namespaces: %w", err)
	}
	return namespaces, nil
}

func (a *agent) addTokens(hub ctrl.Manager, member string, k keeping) error {
	managed := labels.SelectorFromSet(labels.Set{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue})
	accounts, err := controllercluster.New(a.MemberREST, func(o *controllercluster.Options) {
		o.Scheme = a.scheme
		o.Cache.ByObject = map[client.Object]cache.ByObject{&corev1.ServiceAccount{}: {
			Label:      managed,
			Namespaces: map[string]cache.Config{a.Accounts.Namespace: {}},
		}}
	})
	if err != nil {
		return fmt.Errorf("watching service accounts of the member: %w", err)
	}
	if err := hub.Add(accounts); err != nil {
		return err
	}
	return (&rotator.Reconciler{
		Hub: hub.GetClient(), Live: hub.GetAPIReader(), Member: a.direct, MemberCache: accounts.GetCache(),
		HubNamespace: clusterv1beta1.MemberNamespace(member), AccountNamespace: a.Accounts.Namespace, AgentNamespace: a.Member.Namespace, Adopt: a.Accounts.Adopt,
		MemberCA: a.memberCA, Clock: clock.RealClock{}, Recorder: hub.GetEventRecorder("fleetgate-agent"),
		Retention: k.tracker, Epochs: k.epochs,
	}).SetupWithManager(hub)
}

// memberCA reads the CA of the member's API server on each call, because a rotation changes the
// file in a Pod.
func (a *agent) memberCA() ([]byte, error) {
	if len(a.MemberREST.CAData) > 0 {
		return a.MemberREST.CAData, nil
	}
	return os.ReadFile(a.MemberREST.CAFile)
}

// reportedCA returns how to read the CA that the agent reports to the hub. It returns nil if a
// public CA signs for the member's server.
func (a *agent) reportedCA() func() ([]byte, error) {
	if len(a.MemberREST.CAData) == 0 && a.MemberREST.CAFile == "" {
		return nil
	}
	return a.memberCA
}
