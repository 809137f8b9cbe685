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
	"fleetgate.io/fleetgate/pkg/cluster/agent/managednamespace"
	"fleetgate.io/fleetgate/pkg/work/agent/manifestwork"
)

// namespacesOfSets creates the namespaces that ManagedClusterSets want on the member, once the
// agent can read its ManagedCluster on the hub.
func (a *agent) namespacesOfSets(hubConfig *rest.Config, member string) (hubPart, error) {
	hub, err := metadata.NewForConfig(hubConfig)
	if err != nil {
		return hubPart{}, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	clusters := hub.Resource(clusterv1.GroupVersion.WithResource("managedclusters"))
	return hubPart{
		undone: "no namespaces of ManagedClusterSets are made", group: clusterv1.GroupName,
		try: func(ctx context.Context) error {
			_, err := clusters.Get(ctx, member, metav1.GetOptions{})
			return err
		},
		serve: func(ctx context.Context) error { return a.serveManagedNamespaces(ctx, hubConfig, member) },
	}, nil
}

func (a *agent) serveManagedNamespaces(ctx context.Context, hubConfig *rest.Config, member string) error {
	mgr, err := a.newHubManager(hubConfig, onlyManagedCluster(member), func() {})
	if err != nil {
		return err
	}
	if err := a.managedNamespaces(mgr.GetClient(), hubConfig).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the managed namespaces of member %q: %w", member, err)
	}
	log.FromContext(ctx).V(1).Info("Creating the namespaces that ManagedClusterSets request", "managedCluster", member)
	return mgr.Start(ctx)
}

// onlyManagedCluster limits a cache to one ManagedCluster, because the agent has no right to list
// others.
func onlyManagedCluster(name string) cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		&clusterv1.ManagedCluster{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, name)},
	}}
}

// managedNamespaces returns the reconciler. hub is nil when it only releases the namespaces.
func (a *agent) managedNamespaces(hub client.Client, hubConfig *rest.Config) *managednamespace.Reconciler {
	return &managednamespace.Reconciler{
		Hub: hub, Member: a.direct, House: []string{a.Member.Namespace, a.Accounts.Namespace},
		HubHash: manifestwork.HubHash(cmp.Or(a.enroller.Origin(), hubConfig.Host)),
	}
}
