// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lease is the hub's, for all replicas.
type lease struct {
	mu     sync.Mutex
	record *resourcelock.LeaderElectionRecord
	slow   bool
}

// replica is one that takes part.
type replica struct {
	*lease
	name string
	// cut is closed once this replica does not reach the hub any more; nil never is.
	cut chan struct{}
}

// reach blocks if the hub is cut off, as requests to it do.
func (r replica) reach(ctx context.Context) error {
	select {
	case <-r.cut:
		<-ctx.Done()
		return ctx.Err()
	default:
		return nil
	}
}

func (r replica) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := r.reach(ctx); err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slow {
		return nil, nil, errors.New("the hub does not answer")
	}
	if r.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "lease")
	}
	record := *r.record
	return &record, []byte(record.HolderIdentity + record.RenewTime.String()), nil
}

func (r replica) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := r.reach(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.slow {
		return errors.New("the hub does not answer")
	}
	r.record = &record
	return nil
}

func (r replica) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.Update(ctx, record)
}

func (r replica) RecordEvent(string) {}
func (r replica) Identity() string   { return r.name }
func (r replica) Describe() string   { return "lease" }

func (l *lease) setSlow(slow bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow = slow
}

func (l *lease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return ""
	}
	return l.record.HolderIdentity
}

// terms records who led when, and fails if two did at once.
type terms struct {
	t *testing.T

	mu  sync.Mutex
	now string
	all []string
}

func (s *terms) lead(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		s.mu.Lock()
		if s.now != "" {
			s.t.Errorf("%s leads beside %s", name, s.now)
		}
		s.now, s.all = name, append(s.all, name)
		s.mu.Unlock()
		<-ctx.Done()
		time.Sleep(Grace) // Work is in progress.
		s.mu.Lock()
		s.now = ""
		s.mu.Unlock()
		return ctx.Err()
	}
}

func (s *terms) leads() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// endWell waits for the ends of that many replicas.
func endWell(t *testing.T, ended <-chan error, replicas int) {
	t.Helper()
	for range replicas {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestRunner_LostLeaseStopsOnlyTheLeadersWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, s := &lease{}, &terms{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		runner := &Runner{Lock: replica{lease: hub, name: "one"}, Lead: s.lead("one")}
		go func() { ended <- runner.Start(ctx) }()
		for range 2 {
			time.Sleep(20 * time.Second)
			if s.leads() != "one" {
				t.Error("It does not lead.")
			}
			hub.setSlow(true)
			time.Sleep(40 * time.Second)
			if s.leads() != "" {
				t.Error("It leads without the lease.")
			}
			select {
			case err := <-ended:
				t.Fatalf("It has ended: %v", err)
			default:
			}
			hub.setSlow(false)
		}
		time.Sleep(20 * time.Second)
		cancel()
		endWell(t, ended, 1)
		if diff := cmp.Diff([]string{"one", "one", "one"}, s.all); diff != "" {
			t.Errorf("terms (-want +got):\n%s", diff)
		}
	})
}

func TestRunner_ReleasesLeaseAfterWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, s := &lease{}, &terms{t: t}
		stop := map[string]context.CancelFunc{}
		ended := make(chan error, 2)
		for _, name := range []string{"one", "two"} {
			ctx, cancel := context.WithCancel(t.Context())
			stop[name] = cancel
			runner := &Runner{Lock: replica{lease: hub, name: name}, Lead: s.lead(name)}
			go func() { ended <- runner.Start(ctx) }()
			time.Sleep(10 * time.Second)
		}
		stop["one"]()
		endWell(t, ended, 1)
		if hub.holder() == "one" {
			t.Error("It keeps the lease.")
		}
		time.Sleep(5 * time.Second)
		if s.leads() != "two" {
			t.Errorf("%q leads", s.leads())
		}
		stop["two"]()
		endWell(t, ended, 1)
	})
}

func TestRunner_CanBeStoppedBeforeLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &lease{}
		hub.setSlow(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		runner := &Runner{Lock: replica{lease: hub, name: "one"}, Lead: func(context.Context) error { t.Error("It leads."); return nil }}
		go func() { ended <- runner.Start(ctx) }()
		time.Sleep(time.Minute)
		cancel()
		endWell(t, ended, 1)
	})
}

func TestRunner_DisconnectedLeaderStopsBeforeAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, s := &lease{}, &terms{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		one := replica{lease: hub, name: "one", cut: make(chan struct{})}
		for _, r := range []replica{one, {lease: hub, name: "two"}} {
			runner := &Runner{Lock: r, Lead: s.lead(r.name)}
			go func() { ended <- runner.Start(ctx) }()
			time.Sleep(10 * time.Second)
		}
		close(one.cut)
		// A waiting replica retries after at most 2.2 times the period.
		time.Sleep(leaseDuration + 5*retryPeriod)
		if s.leads() != "two" {
			t.Errorf("%q leads", s.leads())
		}
		cancel()
		endWell(t, ended, 2)
	})
}

func TestRunner_SlowHubEndsNothing(t *testing.T) {
	for name, lock := range map[string]resourcelock.Interface{"with a lease": replica{lease: &lease{}, name: "one"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				tries, leads := 0, false
				runner := &Runner{Lock: lock, Lead: func(ctx context.Context) error {
					if tries++; tries <= 2 {
						return fmt.Errorf("asking the hub what it serves: %w", context.DeadlineExceeded)
					}
					leads = true
					<-ctx.Done()
					return nil
				}}
				go func() { ended <- runner.Start(ctx) }()
				time.Sleep(time.Minute)
				synctest.Wait()
				if tries != 3 || !leads {
					t.Errorf("After a minute it has tried %d times, and leads: %t", tries, leads)
				}
				cancel()
				endWell(t, ended, 1)
			})
		})
	}
}

func TestRunner_FailedLeaderLetsAnotherLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, s := &lease{}, &terms{t: t}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		broken := func(context.Context) error { return errors.New("the hub does not answer this replica") }
		for name, lead := range map[string]func(context.Context) error{"one": broken, "two": s.lead("two")} {
			runner := &Runner{Lock: replica{lease: hub, name: name}, Lead: lead}
			go func() { ended <- runner.Start(ctx) }()
		}
		time.Sleep(15 * time.Second)
		if s.leads() != "two" {
			t.Errorf("%q leads", s.leads())
		}
		cancel()
		endWell(t, ended, 2)
	})
}

// stopping is a lease that stops the program when it is acquired.
type stopping struct {
	replica
	stop context.CancelFunc
}

func (s stopping) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	defer s.stop()
	return s.replica.Create(ctx, record)
}

func TestRunner_StoppedWhileAcquiringReleasesLease(t *testing.T) {
	for range 200 { // Which goroutine is the first differs.
		synctest.Test(t, func(t *testing.T) {
			hub := &lease{}
			ctx, cancel := context.WithCancel(t.Context())
			lock := stopping{replica{lease: hub, name: "one"}, cancel}
			if err := (&Runner{Lock: lock, Lead: func(ctx context.Context) error { <-ctx.Done(); return nil }}).Start(ctx); err != nil {
				t.Error(err)
			}
			if holder := hub.holder(); holder != "" {
				t.Errorf("%q keeps the lease", holder)
			}
		})
	}
}

func TestRunner_FinalErrorEndsIt(t *testing.T) {
	broken := errors.New("the hub is another product's")
	for name, lock := range map[string]resourcelock.Interface{"with a lease": replica{lease: &lease{}, name: "one"}, "without": nil} {
		runner := &Runner{
			Lock:    lock,
			Lead:    func(context.Context) error { return broken },
			IsFinal: func(err error) bool { return errors.Is(err, broken) },
		}
		if err := runner.Start(t.Context()); !errors.Is(err, broken) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
