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

// keptEvery is how often a Keeper looks whether what leads to the gateway is still right.
const keptEvery = 30 * time.Second

// Serving is what leads to the gateway at a moment, and is not known when it starts.
type Serving struct {
	// CABundle verifies the gateway's serving certificate (PEM).
	CABundle []byte
	// Extra and Obsolete are those of an Installer, which has more of the latter.
	Extra, Obsolete []client.Object
}

// Keeper installs what leads to the gateway, and puts it right again, in the leader.
type Keeper struct {
	Installer *Installer
	// Wanted says what is to lead to the gateway now, given the account that it runs as. It
	// is asked before each look.
	Wanted func(ctx context.Context, self Account) (Serving, error)
	// Changed yields when Wanted may say something else than before.
	Changed <-chan struct{}
}

// Start keeps until the context ends. It fails if it cannot find out who the gateway is, or
// finds, before it has installed anything, that the hub is another product's.
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
		log.FromContext(ctx).Info("The gateway runs as an administrator: no policy limits its account; give it one of its own", "user", self.Name)
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
			// The hub is another product's: nothing has been written, and nothing will be.
			return err
		default:
			// What people have done to our objects does not end what works.
			next = retries.Step()
			log.FromContext(ctx).Error(err, "What leads to the gateway is not as it should be; trying again", "in", next)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		case <-k.Changed:
		}
	}
}

// keeperRetries is how long to wait after each failure: at most about as long as between two
// looks.
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

// serving is an Installer of that, and of all else that this one installs.
func (i *Installer) serving(wanted Serving) *Installer {
	now := *i
	now.Hub.CABundle = wanted.CABundle
	now.Extra = slices.Concat(i.Extra, wanted.Extra)
	now.Obsolete = slices.Concat(i.Obsolete, wanted.Obsolete)
	return &now
}
