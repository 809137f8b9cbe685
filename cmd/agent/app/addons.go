// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/addon/agent/health"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
)

// addOnHealth reports the health of add-ons in the hub's namespace with the cluster's name, once the
// hub serves the kind and allows the agent to read it there.
func (a *agent) addOnHealth(hubConfig *rest.Config, cluster string) (hubPart, error) {
	hub, err := metadata.NewForConfig(hubConfig)
	if err != nil {
		return hubPart{}, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	addOns := hub.Resource(addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")).Namespace(cluster)
	return hubPart{
		undone: "no health of add-ons is reported", group: addonv1alpha1.GroupName,
		try: func(ctx context.Context) error {
			_, err := addOns.List(ctx, metav1.ListOptions{Limit: 1})
			return err
		},
		serve: func(ctx context.Context) error { return a.serveAddOnHealth(ctx, hubConfig, cluster) },
	}, nil
}

func (a *agent) serveAddOnHealth(ctx context.Context, hubConfig *rest.Config, cluster string) error {
	mgr, err := a.newHubManager(hubConfig, inNamespace(cluster), func() {})
	if err != nil {
		return err
	}
	if err := (&health.Reconciler{Hub: mgr.GetClient(), Member: a.direct, Clock: clock.RealClock{}}).SetupWithManager(mgr); err != nil {
		return fmt.Errorf("setting up the health of add-ons of member %q: %w", cluster, err)
	}
	log.FromContext(ctx).V(1).Info("Reporting the health of add-ons", "namespace", cluster)
	return mgr.Start(ctx)
}
