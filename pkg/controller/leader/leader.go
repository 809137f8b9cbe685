// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader runs leader-elected work while this replica holds the lease, and starts it again
// whenever the replica gets the lease again. Other work of the replica continues meanwhile: a hub
// that is too slow to renew the lease must not interrupt the access to members, which needs no
// leader.
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
	// Lead does the leader's work until its context ends, which it does when the lease is lost; it
	// then has Grace to return. It is called again for each term, so it must re-create everything
	// that can run only once. When it fails, the lease is released, and it is called again after a
	// while if no other replica leads by then.
	Lead func(ctx context.Context) error
	// IsFinal is true for an error of Lead that only a person can fix: it ends the Runner. nil:
	// there is none.
	IsFinal func(error) bool
}

// How long a replica holds the lease without a renewal, how long it tries to renew, and how often:
// the defaults of Kubernetes' controllers.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Grace is how long the leader's work may take to end after its context has ended: a second less
// than the shortest time until another replica may lead. A replica that does not reach the hub
// stops leading after retryPeriod and renewDeadline, and the others wait for leaseDuration from the
// last renewal that they saw. Work that has not ended by then has an ended context, so it starts no
// more writes. A write in flight for that long meets an object that has changed, and is refused or
// merged, as with any other concurrent writer.
const Grace = leaseDuration - renewDeadline - retryPeriod - time.Second

// How long to wait after Lead has failed: at first longer than other replicas take to notice the
// free lease, since one of them may have a better connection to the hub.
const (
	firstPause   = 5 * time.Second
	longestPause = time.Minute
)

// NewLock returns a lease that this process holds under its identity. It has its own client, so
// that other requests do not delay it.
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

// Start runs until the context ends, which ends Lead and then releases the lease, or until Lead
// fails with a final error.
func (r *Runner) Start(ctx context.Context) error {
	pause := firstPause
	for ctx.Err() == nil {
		began := time.Now()
		failure, err := r.term(ctx)
		if err != nil || ctx.Err() != nil {
			return err
		}
		if failure == nil {
			log.FromContext(ctx).Info("Lost the leader lease; stopping the leader-elected controllers of this replica", "lease", r.Name)
			continue
		}
		if r.IsFinal != nil && r.IsFinal(failure) {
			return failure
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		log.FromContext(ctx).Error(failure, "The leader-elected controllers of this replica failed; restarting them", "lease", r.Name, "after", pause)
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

// term waits for the lease, leads, and returns when the leader's work has ended, with the error of
// Lead. It holds the lease until Lead has returned, even after ctx has ended, so that no other
// replica leads at the same time.
func (r *Runner) term(ctx context.Context) (failure, err error) {
	if r.Lock == nil {
		return r.leadWhile(ctx, ctx), nil
	}
	electing, give := context.WithCancel(context.WithoutCancel(ctx))
	defer give()
	lock, ended := &takenLock{Interface: r.Lock}, make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: r.Name, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		// The elector would try to release the lease on an unresponsive hub before it reports that
		// the lease is lost, and would let others lead before Lead has returned.
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
		if !lock.taken.Load() { // Otherwise the leader's work ends first.
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

// takenLock is a lease that records whether it was acquired. The elector then leads in a separate
// goroutine that may begin only after the elector has ended.
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

// release lets others lead at once, if this replica still holds the lease. If it fails, the lease
// expires.
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
		log.FromContext(ctx).Info("Could not release the Lease; it expires", "lease", r.Name, "reason", err.Error())
	}
}

// leadWhile leads until one of the contexts ends. An error because of that is no failure.
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
		return errors.New("the leader's controllers ended unexpectedly")
	case leading.Err() == nil:
		return err
	case err != nil:
		log.FromContext(ctx).Info("Not all that the leader did ended as it should", "reason", err.Error())
	}
	return nil
}
