// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// LeaseName is the Lease of an installing gateway.
const LeaseName = "fleetgate-install"

const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = time.Second
)

var errLeaseLost = errors.New("the Lease could not be renewed in time")

// Exclusively runs do while no other replica installs, and waits for its turn until the context ends.
// The context of do ends with the Lease; do has returned when Exclusively returns. It waits for the
// Lease of a killed installer, at most 15 seconds.
func Exclusively(ctx context.Context, client kubernetes.Interface, namespace, identity string, do func(context.Context) error) error {
	electing, stop := context.WithCancel(ctx)
	defer stop()
	// The turn is taken once: by do as soon as the Lease is acquired, or by this function when do can
	// no longer start. The elector itself does not wait for do.
	turn, result := make(chan struct{}, 1), make(chan error, 1)
	turn <- struct{}{}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: LeaseName},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				select {
				case <-turn:
				default:
					return
				}
				defer stop()
				err := do(leading)
				if err != nil && leading.Err() != nil {
					err = fmt.Errorf("%w: %w", cmp.Or(ctx.Err(), errLeaseLost), err)
				}
				result <- err
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up Lease %s/%s: %w", namespace, LeaseName, err)
	}
	elector.Run(electing)
	select {
	case err := <-result:
		return err
	case <-turn:
		return fmt.Errorf("waiting for Lease %s/%s: %w", namespace, LeaseName, cmp.Or(ctx.Err(), errLeaseLost))
	}
}
