// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader runs what one replica of several does, for as long as that replica has
// the lease, and again whenever it gets it back. What every replica does goes on
// meanwhile: a hub that is too slow for the lease to be renewed must not take away the way
// into members, which needs no leader.
package leader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// A Runner takes part in an election until it is stopped.
type Runner struct {
	// Lock is the lease; nil leads without one.
	Lock resourcelock.Interface
	// Name is that of the lease, in metrics.
	Name string
	// Lead does what the leader does until its context ends, which it does when the lease is
	// lost; it then has Grace to return. It is called anew each time, so it must make anew
	// what can run once only. When it fails, the lease is given up, and it is called again
	// after a while if no other replica leads by then.
	Lead func(ctx context.Context) error
	// IsFinal tells of a failure of Lead that trying again does not mend, but a person: it
	// ends the Runner. nil: there is none.
	IsFinal func(error) bool
}

// How long a replica has the lease without renewing it, how long it tries to, and how
// often: as every controller of Kubernetes.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Grace is how long what the leader does may take to end once its context has: a second
// less than the shortest time until another replica may lead. A replica that does not reach
// the hub stops to lead after retryPeriod and renewDeadline, and the others wait for
// leaseDuration from the last renewal that they saw. What has not ended by then has a
// context that has, so it writes nothing more; a write that is on its way all that time
// meets an object that has changed, and is refused or merged, as beside any other writer.
const Grace = leaseDuration - renewDeadline - retryPeriod - time.Second

// How long to wait after Lead has failed: at first longer than other replicas take to see
// that the lease is free, since one of them may have a better way to the hub.
const (
	firstPause   = 5 * time.Second
	longestPause = time.Minute
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
// until Lead fails for good.
func (r *Runner) Start(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		failure, err := r.term(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if failure == nil {
			log.FromContext(ctx).Info("The lease is lost: the controllers of this replica stop, and all else goes on", "lease", r.Name)
			continue
		}
		if r.IsFinal != nil && r.IsFinal(failure) {
			return failure
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		log.FromContext(ctx).Error(failure, "The controllers of this replica have failed: they are started again, and all else goes on", "lease", r.Name, "after", pause)
		sleep(ctx, pause)
		pause = min(2*pause, longestPause)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// term waits for the lease, leads, and returns when nothing is led any more, with what Lead
// failed with. The lease outlives ctx until Lead has returned, so that nobody else leads
// beside it.
func (r *Runner) term(ctx context.Context) (failure, err error) {
	if r.Lock == nil {
		return r.leadWhile(ctx, ctx), nil
	}
	electing, give := context.WithCancel(context.WithoutCancel(ctx))
	defer give()
	lock, ended := &takenLock{Interface: r.Lock}, make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: r.Name, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		// The elector would ask a hub that does not answer to take the lease back before it
		// says that the lease is lost, and have others lead before Lead has returned.
		ReleaseOnCancel: false,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(holding context.Context) {
				ended <- r.leadWhile(ctx, holding)
				give()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("taking part in the election: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		if !lock.taken.Load() { // Otherwise what is led ends first.
			give()
		}
	})
	defer stop()
	elector.Run(electing)
	if !lock.taken.Load() {
		return nil, nil
	}
	failure = <-ended
	r.release(ctx)
	return failure, nil
}

// takenLock is a lease that knows whether it was taken. The elector then leads, in a
// goroutine of its own that may begin only after the elector has ended.
type takenLock struct {
	resourcelock.Interface
	taken atomic.Bool
}

func (l *takenLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(l.Interface.Create(ctx, record))
}

func (l *takenLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.note(l.Interface.Update(ctx, record))
}

func (l *takenLock) note(err error) error {
	if err == nil {
		l.taken.Store(true)
	}
	return err
}

// release lets others lead at once, where the lease is still this replica's. Where it
// fails, the lease runs out.
func (r *Runner) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewDeadline)
	defer cancel()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		record, _, err := r.Lock.Get(ctx)
		if err != nil || record.HolderIdentity != r.Lock.Identity() {
			return err
		}
		now := metav1.Now()
		return r.Lock.Update(ctx, resourcelock.LeaderElectionRecord{
			LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
		})
	})
	if err != nil {
		log.FromContext(ctx).Info("The lease is not given back, and runs out", "lease", r.Name, "reason", err.Error())
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
	switch {
	case leading.Err() == nil && err == nil:
		return errors.New("what the leader does has ended by itself")
	case leading.Err() == nil:
		return err
	case err != nil:
		log.FromContext(ctx).Info("Not all that the leader did ended as it should", "reason", err.Error())
	}
	return nil
}
