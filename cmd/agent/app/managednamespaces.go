// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/managednamespace"
	"fleetgate.io/fleetgate/pkg/work/manifestwork"
)

// serveManagedNamespaces makes the namespaces that ManagedClusterSets want on the member, from
// when the hub shows the agent its ManagedCluster. A hub that has no such kind, or does not show
// it, is asked now and then with one request, and nothing of it is watched.
func (a *agent) serveManagedNamespaces(ctx context.Context, hubConfig *rest.Config, member string) error {
	hub, err := metadata.NewForConfig(hubConfig)
	if err != nil {
		return fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	clusters := hub.Resource(clusterv1.GroupVersion.WithResource("managedclusters"))
	shown := awaitHub(ctx, "No namespaces of ManagedClusterSets are made: the hub does not show its ManagedCluster to this agent: ", hubLatestAsk, func() error {
		_, err := clusters.Get(ctx, member, metav1.GetOptions{})
		return err
	})
	if !shown {
		return nil
	}
	mgr, err := a.newHubManager(hubConfig, onlyManagedCluster(member), func() {})
	if err != nil {
		return err
	}
	if err := a.managedNamespaces(mgr.GetClient(), hubConfig).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the managed namespaces of member %q: %w", member, err)
	}
	log.FromContext(ctx).V(1).Info("Making the namespaces that ManagedClusterSets want", "managedCluster", member)
	return mgr.Start(ctx)
}

// onlyManagedCluster is what an agent sees of its hub that sees one ManagedCluster, and nothing
// else: it has no right to see another.
func onlyManagedCluster(name string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)},
	}}
}

// managedNamespaces is who makes them, for a hub that may be nil to let them go.
func (a *agent) managedNamespaces(hub client.Client, hubConfig *rest.Config) *managednamespace.Reconciler {
	return &managednamespace.Reconciler{
		Hub: hub, Member: a.direct, House: []string{a.Namespace, a.AccountNamespace},
		HubHash: manifestwork.HubHash(cmp.Or(a.enroller.Origin(), hubConfig.Host)),
	}
}
