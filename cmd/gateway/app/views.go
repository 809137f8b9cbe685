// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/fleetview"
)

// fleetViews reads FleetViews from the cache, which has them before the API server runs.
func (g *gateway) fleetViews(ctx context.Context) fleetview.Views {
	return fleetview.ViewsFunc(func(name string) (*viewv1alpha1.FleetView, bool) {
		var view viewv1alpha1.FleetView
		if err := g.manager.GetCache().Get(ctx, client.ObjectKey{Name: name}, &view); err != nil {
			return nil, false
		}
		return &view, true
	})
}
