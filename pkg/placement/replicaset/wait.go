// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// kindsPoll is how often the hub is asked for kinds that it does not serve yet.
const kindsPoll = 2 * time.Second

// waiter waits until the hub serves what decides about clusters, which may be another
// product's: a watch of a kind that is not there would fail. Then it starts the controller.
type waiter struct {
	live client.Reader
	then func() error
}

// Start implements manager.Runnable.
func (w *waiter) Start(ctx context.Context) error {
	told := false
	err := wait.PollUntilContextCancel(ctx, kindsPoll, true, func(ctx context.Context) (bool, error) {
		missing, err := w.missing(ctx)
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Could not find out whether the hub serves Placements; trying again")
		}
		if err != nil {
			//lint:ignore nilerr It has been told, and is tried again.
			return false, nil
		}
		if missing != "" && !told {
			ctrl.LoggerFrom(ctx).Info("Nothing is made of ManifestWorkReplicaSets until the hub serves Placements", "missing", missing)
			told = true
		}
		return missing == "", nil
	})
	if err != nil {
		//lint:ignore nilerr It is the end of the gateway.
		return nil
	}
	return w.then()
}

// missing names a definition that the hub does not serve, empty if it serves all.
func (w *waiter) missing(ctx context.Context) (string, error) {
	for _, name := range []string{"placements.cluster.open-cluster-management.io", "placementdecisions.cluster.open-cluster-management.io"} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := w.live.Get(ctx, client.ObjectKey{Name: name}, definition)
		if client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("looking for CustomResourceDefinition %s: %w", name, err)
		}
		if err != nil || availability.OfCustomResourceDefinition(definition).State != availability.Available {
			//lint:ignore nilerr It is not there: that is an answer.
			return name, nil
		}
	}
	return "", nil
}
