// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package awaited waits for what another product may bring to the hub: kinds that it does
// not serve yet.
package awaited

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

// Kinds waits until the hub serves kinds that somebody else may install: a watch of a kind
// that is not there would fail. It is a manager.Runnable.
type Kinds struct {
	Live client.Reader
	// Names are those of the CustomResourceDefinitions.
	Names []string
	// Missing is what the log says while one is not there.
	Missing string
	// Then is called once all are served.
	Then func() error
}

// Start implements manager.Runnable.
func (k *Kinds) Start(ctx context.Context) error {
	told := false
	err := wait.PollUntilContextCancel(ctx, kindsPoll, true, func(ctx context.Context) (bool, error) {
		missing, err := k.missing(ctx)
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Could not find out whether the hub serves kinds that others install; trying again")
		}
		if err != nil {
			//lint:ignore nilerr It has been told, and is tried again.
			return false, nil
		}
		if missing != "" && !told {
			ctrl.LoggerFrom(ctx).Info(k.Missing, "missing", missing)
			told = true
		}
		return missing == "", nil
	})
	if err != nil {
		//lint:ignore nilerr It is the end of the gateway.
		return nil
	}
	return k.Then()
}

// missing names a definition that the hub does not serve, empty if it serves all.
func (k *Kinds) missing(ctx context.Context) (string, error) {
	for _, name := range k.Names {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		err := k.Live.Get(ctx, client.ObjectKey{Name: name}, definition)
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
