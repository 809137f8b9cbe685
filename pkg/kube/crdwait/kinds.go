// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crdwait waits for CustomResourceDefinitions to be served: for those that were just applied
// ([UntilServed]), and for those that another product may install later ([Kinds]).
package crdwait

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// kindsPoll is the interval of checks for missing kinds.
const kindsPoll = 2 * time.Second

// Kinds waits until the hub serves kinds that somebody else may install, because a watch of a
// missing kind would fail. It is a manager.Runnable.
type Kinds struct {
	// Manager runs it, and what Then adds.
	Manager ctrl.Manager
	// Names are those of the CustomResourceDefinitions.
	Names []string
	// Missing is the log message while one is not served.
	Missing string
	// Then is called once all are served. What it adds to its manager starts when it has returned.
	// A controller that is added to a running manager would start at once with the watches that it
	// has by then, and would not wait for the initial lists of later ones.
	Then func(mgr ctrl.Manager) error
}

// Start implements manager.Runnable.
func (k *Kinds) Start(ctx context.Context) error {
	logged := false
	err := wait.PollUntilContextCancel(ctx, kindsPoll, true, func(ctx context.Context) (bool, error) {
		for _, name := range k.Names {
			reason, err := notServed(ctx, k.Manager.GetAPIReader(), name)
			if err != nil && ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "Could not find out whether the hub serves kinds that others install; trying again")
			}
			if reason != nil && !logged {
				ctrl.LoggerFrom(ctx).Info(k.Missing, "missing", name)
				logged = true
			}
			if err != nil || reason != nil {
				//lint:ignore nilerr The error is logged, and the check is retried.
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		//lint:ignore nilerr The gateway is stopping.
		return nil
	}
	return k.then()
}

func (k *Kinds) then() error {
	later := &adding{Manager: k.Manager}
	if err := k.Then(later); err != nil {
		return err
	}
	for _, runnable := range later.added {
		if err := k.Manager.Add(runnable); err != nil {
			return fmt.Errorf("starting what waited for kinds of the hub: %w", err)
		}
	}
	return nil
}

// adding collects runnables to add later.
type adding struct {
	ctrl.Manager
	added []manager.Runnable
}

// Add implements manager.Manager.
func (a *adding) Add(runnable manager.Runnable) error {
	a.added = append(a.added, runnable)
	return nil
}
