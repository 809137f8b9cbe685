// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestSurplus_IsZeroForInsignificantDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		own    int
		others []int
		want   int
	}{
		"the only gateway":              {1000, nil, 0},
		"equal gateways":                {1000, []int{1000, 1000}, 0},
		"a new gateway":                 {1000, []int{1000, 0}, 334},
		"the new gateway itself":        {0, []int{1000, 1000}, 0},
		"a difference by chance":        {260, []int{250, 240}, 0},
		"less than the mean":            {240, []int{300, 230}, 0},
		"one member more":               {2, []int{1, 1}, 0},
		"two members, a third gateway":  {2, []int{2, 0}, 1},
		"the remainder of the division": {1, []int{1, 0}, 0},
	} {
		if got := surplusOf(c.own, c.others); got != c.want {
			t.Errorf("%s: a surplus of %d, want %d", name, got, c.want)
		}
	}
}

func TestStep_MovesAPartAtATime(t *testing.T) {
	for _, c := range []struct{ own, surplus, want int }{{1000, 334, 50}, {1000, 20, 20}, {10, 5, 1}, {1, 1, 1}} {
		if got := stepOf(c.own, c.surplus); got != c.want {
			t.Errorf("of %d sessions and a surplus of %d, %d move at a time, want %d", c.own, c.surplus, got, c.want)
		}
	}
}

// scaled is a fleet whose gateways are behind one Service.
type scaled struct {
	registries []*Registry
	// replicas are the gateways that run, the first of registries.
	replicas atomic.Int32
	dials    atomic.Int32
	ended    sync.WaitGroup

	// mu guards random.
	mu     sync.Mutex
	random *rand.Rand
}

func (f *scaled) float() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.Float64()
}

// load is the number of members with a session at a gateway.
func (f *scaled) load(i int) (n int) {
	r := f.registries[i]
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, sessions := range r.members {
		if slices.ContainsFunc(sessions, func(s *session) bool { return !s.retired }) {
			n++
		}
	}
	return n
}

func (f *scaled) loads() (all []int) {
	for i := range int(f.replicas.Load()) {
		all = append(all, f.load(i))
	}
	return all
}

func (f *scaled) moves() (n int) {
	for _, r := range f.registries {
		n += int(testutil.ToFloat64(r.metrics.moves))
	}
	return n
}

// startScaled starts one gateway of several, and the agents of that many members.
func startScaled(ctx context.Context, t *testing.T, members, gateways int) *scaled {
	t.Helper()
	f := &scaled{random: rand.New(rand.NewPCG(1, uint64(gateways)))}
	f.replicas.Store(1)
	for i := range gateways {
		r, err := NewRegistry(Options{Info: func() Info {
			return Info{Replica: fmt.Sprint("gateway-", i), Replicas: int(f.replicas.Load()), Members: members}
		}})
		if err != nil {
			t.Fatal(err)
		}
		r.loads = func() ([]int, bool) {
			all := f.loads()
			if i >= len(all) {
				return nil, false
			}
			return slices.Delete(all, i, i+1), true
		}
		f.registries = append(f.registries, r)
	}
	for _, r := range f.registries {
		f.ended.Go(func() { r.keepBalanced(ctx) })
	}
	for m := range members {
		member := fmt.Sprint("member-", m)
		connector := &Connector{Member: member, Sessions: 2, Random: f.float, Dial: func(context.Context) (net.Conn, error) {
			f.dials.Add(1)
			gateway, agent := net.Pipe()
			r := f.registries[int(f.float()*float64(f.replicas.Load()))]
			f.ended.Go(func() { _ = r.Serve(ctx, member, gateway) })
			return agent, nil
		}}
		f.ended.Go(func() { _ = connector.Run(ctx) })
	}
	return f
}

// scaleTo starts further gateways.
func (f *scaled) scaleTo(gateways int) {
	f.replicas.Store(int32(gateways))
	for i := range gateways {
		f.registries[i].SendInfoAll()
	}
}

// settle waits until no session moved and no agent dialed for two minutes.
func (f *scaled) settle(t *testing.T) {
	t.Helper()
	for range 10 {
		moves, dials := f.moves(), f.dials.Load()
		time.Sleep(2 * time.Minute)
		if f.moves() == moves && f.dials.Load() == dials {
			return
		}
	}
	t.Errorf("sessions still move, %v after 20 minutes", f.loads())
}

func TestRegistry_BalancesSessionsAfterScaleOut(t *testing.T) {
	members := 200
	if os.Getenv("FLEETGATE_MATRIX") != "" {
		members = 1000 // takes minutes with the race detector
	}
	for _, c := range []struct{ from, to int }{{1, 2}, {2, 4}, {4, 8}} {
		t.Run(fmt.Sprintf("from %d to %d gateways", c.from, c.to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				f := startScaled(ctx, t, members, c.to)
				defer f.ended.Wait()
				defer cancel()
				f.scaleTo(c.from)
				time.Sleep(2 * time.Minute)
				moves, dials := f.moves(), f.dials.Load()
				f.scaleTo(c.to)
				f.settle(t)
				loads, needed := f.loads(), 2*members*(c.to-c.from)/c.to
				if c.from == 1 {
					needed = 0 // the second gateway gets each agent's second session
				}
				moved := f.moves() - moves
				t.Logf("loads %v, %d sessions moved, %d connections", loads, moved, f.dials.Load()-dials)
				total := 0
				for _, n := range loads {
					total += n
				}
				lowest, highest, mean := slices.Min(loads), slices.Max(loads), total/c.to
				if total != 2*members || highest-lowest >= 2+mean/balanceTenth {
					t.Errorf("%d sessions, from %d to %d at a gateway", total, lowest, highest)
				}
				if moved > needed+needed/4 {
					t.Errorf("%d sessions moved, %d had to", moved, needed)
				}
			})
		})
	}
}
