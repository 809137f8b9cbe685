// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// keptEvery is the interval at which a Keeper checks the objects.
const keptEvery = 30 * time.Second

// Serving is the current content of the objects that route requests to the gateway. It is not known at
// the start.
type Serving struct {
	// CABundle verifies the gateway's serving certificate (PEM).
	CABundle []byte
	// Extra and Obsolete are as in Installer, which has additional obsolete objects.
	Extra, Obsolete []client.Object
}

// Keeper installs these objects and reverts changes of them. It runs in the leader.
type Keeper struct {
	Installer *Installer
	// Wanted returns the desired content for the account of the gateway. It is called before each
	// check.
	Wanted func(ctx context.Context, self Account) (Serving, error)
	// Changed receives a value when Wanted may return something else.
	Changed <-chan struct{}
}

// Start runs until the context ends. It fails if the gateway's account cannot be read, or if the first
// installation finds another product on the hub.
func (k *Keeper) Start(ctx context.Context) error {
	self, err := WhoAmI(ctx, k.Installer.Client)
	if ctx.Err() != nil {
		//lint:ignore nilerr It is the end that it comes of.
		return nil
	}
	if err != nil {
		return err
	}
	if self.Administrator {
		log.FromContext(ctx).Info("The gateway runs as an administrator, so no policy limits its account; configure a dedicated account", "user", self.Name)
	}
	retries, installed := keeperRetries(), false
	for {
		next := keptEvery
		var foreign *ForeignObjectError
		switch err := k.install(ctx, self); {
		case ctx.Err() != nil:
			//lint:ignore nilerr It is the end that it comes of.
			return nil
		case err == nil:
			retries, installed = keeperRetries(), true
		case errors.As(err, &foreign) && !installed:
			// The hub has another product: nothing was written.
			return err
		default:
			// Changes of our objects by users must not stop a working gateway.
			next = retries.Step()
			log.FromContext(ctx).Error(err, "Could not install the gateway's APIServices, policies and webhook configurations; retrying", "in", next)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		case <-k.Changed:
		}
	}
}

// keeperRetries is the delay after each failure, at most about the interval between checks.
func keeperRetries() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: keptEvery}
}

func (k *Keeper) install(ctx context.Context, self Account) error {
	wanted, err := k.Wanted(ctx, self)
	if err != nil {
		return err
	}
	if err := k.Installer.serving(wanted).InstallServing(ctx); err != nil {
		return fmt.Errorf("installing what leads to the gateway: %w", err)
	}
	return nil
}

// serving is an Installer with the current content, including the constant objects.
func (i *Installer) serving(wanted Serving) *Installer {
	now := *i
	now.Hub.CABundle = wanted.CABundle
	now.Extra = slices.Concat(i.Extra, wanted.Extra)
	now.Obsolete = slices.Concat(i.Obsolete, wanted.Obsolete)
	return &now
}
