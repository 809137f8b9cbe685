// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader runs what one replica of several does, for as long as that replica has
// the lease, and again whenever it gets it back. What every replica does goes on
// meanwhile: a hub that is too slow for the lease to be renewed must not take away the way
// into members, which needs no leader.
package leader

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A Runner takes part in an election until it is stopped.
type Runner struct {
	// Lock is the lease; nil leads without one.
	Lock resourcelock.Interface
	// Name is that of the lease, in metrics.
	Name string
	// Lead does what the leader does until its context ends, which it does when the lease is
	// lost. It is called anew each time, so it must make anew what can run once only. An
	// error that it returns while it leads ends the Runner.
	Lead func(ctx context.Context) error
}

// How long a replica has the lease without renewing it, how long it tries to, and how
// often: as every controller of Kubernetes.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// NewLock returns a lease that this process takes under its identity. Its client is its
// own: requests of others do not hold it up.
func NewLock(hub *rest.Config, namespace, name, identity string) (resourcelock.Interface, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace, name,
		resourcelock.ResourceLockConfig{Identity: identity}, hub, renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("setting up Lease %s/%s: %w", namespace, name, err)
	}
	return lock, nil
}

// NeedLeaderElection is false: this is the election.
func (*Runner) NeedLeaderElection() bool { return false }

// Start runs until the context ends, which ends Lead and then gives the lease back, or
// until Lead fails.
func (r *Runner) Start(ctx context.Context) error {
	if r.Lock == nil {
		return r.leadWhile(ctx, ctx)
	}
	for ctx.Err() == nil {
		if err := r.term(ctx); err != nil {
			return err
		}
		if ctx.Err() == nil {
			log.FromContext(ctx).Info("The lease is lost: the controllers of this replica stop, and all else goes on", "lease", r.Lock.Describe())
		}
	}
	return nil
}

// term waits for the lease, leads, and returns when the lease is lost and nothing is led
// any more. The lease outlives ctx until Lead has returned, so that nobody else leads
// beside it.
func (r *Runner) term(ctx context.Context) error {
	electing, give := context.WithCancel(context.WithoutCancel(ctx))
	defer give()
	began, ended := make(chan struct{}), make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: r.Lock, Name: r.Name, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				close(began)
				ended <- r.leadWhile(ctx, holding)
				give()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("taking part in the election: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-began: // What is led ends first.
		default:
			give()
		}
	})
	defer stop()
	elector.Run(electing)
	select {
	case <-began:
		return <-ended
	default:
		return nil
	}
}

// leadWhile leads until one of the contexts ends. What fails because of that is no failure.
func (r *Runner) leadWhile(ctx, holding context.Context) error {
	if ctx.Err() != nil {
		return nil
	}
	leading, cancel := context.WithCancel(holding)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	err := r.Lead(leading)
	if err == nil || leading.Err() == nil {
		return err
	}
	log.FromContext(ctx).Info("Not all that the leader did ended as it should", "reason", err.Error())
	return nil
}
