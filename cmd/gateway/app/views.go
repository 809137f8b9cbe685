// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
)

// fleetViews reads FleetViews from the cache. Nothing waits for it: a gateway with the
// role of the previous version cannot list them, and still serves everything else.
func (g *gateway) fleetViews(ctx context.Context) (fleetview.Views, error) {
	all := g.manager.GetCache()
	informer, err := all.GetInformer(ctx, &viewv1alpha1.FleetView{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching FleetViews: %w", err)
	}
	return fleetview.ViewsFunc(func(ctx context.Context, name string) (*viewv1alpha1.FleetView, error) {
		if !informer.HasSynced() {
			return nil, apierrors.NewServiceUnavailable("the gateway has not read FleetViews yet: if that lasts, let its account list and watch them; the view all needs none")
		}
		var view viewv1alpha1.FleetView
		if err := all.Get(ctx, client.ObjectKey{Name: name}, &view); err != nil {
			return nil, err
		}
		return &view, nil
	}), nil
}
