// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// brokenMultiplexer is a session that lasts for a while and then breaks.
type brokenMultiplexer struct {
	conn net.Conn
	done chan struct{}
	once sync.Once
}

func lastsFor(d time.Duration, conn net.Conn) *brokenMultiplexer {
	c := &brokenMultiplexer{conn: conn, done: make(chan struct{})}
	time.AfterFunc(d, func() { _ = c.Close() })
	return c
}

func (c *brokenMultiplexer) Open(context.Context, []byte) (net.Conn, error) {
	return nil, ErrSessionClosed
}

func (c *brokenMultiplexer) Accept(ctx context.Context) (net.Conn, error) {
	select {
	case <-c.done:
		return nil, ErrSessionClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *brokenMultiplexer) Close() error {
	c.once.Do(func() { close(c.done); _ = c.conn.Close() })
	return nil
}

func (c *brokenMultiplexer) Drain()                    {}
func (c *brokenMultiplexer) Draining() <-chan struct{} { return nil }
func (c *brokenMultiplexer) SendInfo([]byte)           {}
func (c *brokenMultiplexer) Infos() <-chan []byte      { return nil }
func (c *brokenMultiplexer) Streams() int              { return 0 }

func (c *brokenMultiplexer) Responds(context.Context) bool { return true }
func (c *brokenMultiplexer) Unresponsive() bool            { return false }

func (c *brokenMultiplexer) Done() <-chan struct{} { return c.done }
func (c *brokenMultiplexer) Err() error            { return ErrSessionClosed }

// TestConnector_WaitsBetweenAttempts replays attempts and checks the waits between them.
func TestConnector_WaitsBetweenAttempts(t *testing.T) {
	refused := &HubError{StatusCode: 503}
	const failed = -1
	for name, c := range map[string]struct {
		// lasts is how long each session lasts; failed is an attempt without one.
		lasts []time.Duration
		// want are the waits after each, with the largest random number.
		want []time.Duration
	}{
		"failures back off to the ceiling": {
			[]time.Duration{failed, failed, failed, failed, failed, failed, failed},
			[]time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 30 * time.Second, 30 * time.Second},
		},
		"short sessions are failures": {
			[]time.Duration{time.Second, 59 * time.Second, failed},
			[]time.Duration{1 * time.Second, 2 * time.Second, 4 * time.Second},
		},
		"a stable minute resets the backoff": {
			[]time.Duration{failed, failed, time.Minute, failed},
			[]time.Duration{1 * time.Second, 2 * time.Second, 1 * time.Second, 2 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var waits []time.Duration
				var ended time.Time
				var states []bool
				attempt := -1
				connector := &Connector{
					Member: "m",
					Dial: func(context.Context) (net.Conn, error) {
						if !ended.IsZero() {
							waits = append(waits, time.Since(ended))
						}
						if attempt++; attempt == len(c.lasts) {
							cancel()
							return nil, ctx.Err()
						}
						if c.lasts[attempt] == failed {
							return nil, refused
						}
						conn, _ := net.Pipe()
						return conn, nil
					},
					OnStateChange: func(s State) {
						states = append(states, s.Connected)
						if !s.Connected {
							ended = time.Now()
						}
						if s.Connected != (s.Reason == nil) {
							t.Errorf("connected is %v, the reason is %v", s.Connected, s.Reason)
						}
						if c.lasts[attempt] == failed && !errors.Is(s.Reason, refused) {
							t.Errorf("the reason is %v, want the dial's", s.Reason)
						}
					},
					Random: func() float64 { return 1 },
					newMultiplexer: func(_ context.Context, conn net.Conn) (Multiplexer, error) {
						return lastsFor(c.lasts[attempt], conn), nil
					},
				}
				if err := connector.Run(ctx); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, waits); diff != "" {
					t.Errorf("waits, -want +got:\n%s", diff)
				}
				var want []bool
				for _, lasts := range c.lasts {
					if lasts != failed {
						want = append(want, true)
					}
					want = append(want, false)
				}
				if diff := cmp.Diff(want, states); diff != "" {
					t.Errorf("states, -want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestConnector_StopsDuringWaitOrDial(t *testing.T) {
	for name, dial := range map[string]func(context.Context) (net.Conn, error){
		"a wait": func(context.Context) (net.Conn, error) { return nil, errors.New("no") },
		"a dial": func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- (&Connector{Member: "m", Dial: dial}).Run(ctx) }()
				synctest.Wait()
				cancel()
				began := time.Now()
				if err := <-ended; err != nil || !time.Now().Equal(began) {
					t.Errorf("ended with %v after %v, want at once", err, time.Since(began))
				}
			})
		})
	}
}

func TestConnector_LimitsDialTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		connector := &Connector{
			Member:        "m",
			Dial:          func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
			OnStateChange: func(State) { cancel() },
		}
		if err := connector.Run(ctx); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(began); got != 30*time.Second {
			t.Errorf("the dial was given up after %v, want 30s", got)
		}
	})
}

func TestConnector_RefusesIncompleteConfig(t *testing.T) {
	dial := func(context.Context) (net.Conn, error) { return nil, errors.New("not to be called") }
	for name, c := range map[string]*Connector{
		"no member":          {Dial: dial},
		"no dial":            {Member: "m"},
		"an unusable target": {Member: "m", Dial: dial, Targets: map[string]Target{"a b": TCP("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Run(t.Context()); err == nil {
				t.Error("Run accepted it")
			}
		})
	}
}

// A gateway with a thousand agents stops and restarts after a while. Only the agents' own waits
// keep them from reconnecting all at once.
func TestConnector_AThousandAgentsReconnectSpreadOut(t *testing.T) {
	const (
		agents = 1000
		lived  = 2 * time.Minute
		away   = 10 * time.Second
		window = 100 * time.Millisecond
	)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		ends := began.Add(lived)
		var mu sync.Mutex
		// attempts are counted by the time since the gateway stopped.
		attempts := map[time.Duration]int{}
		connected := 0
		var running sync.WaitGroup
		for range agents {
			connector := &Connector{
				Member: "m",
				Dial: func(context.Context) (net.Conn, error) {
					since := time.Since(ends)
					if since < 0 {
						conn, _ := net.Pipe()
						return conn, nil
					}
					mu.Lock()
					defer mu.Unlock()
					attempts[since/window]++
					if since < away {
						return nil, &HubError{StatusCode: 503}
					}
					connected++
					conn, _ := net.Pipe()
					return conn, nil
				},
				newMultiplexer: func(_ context.Context, conn net.Conn) (Multiplexer, error) {
					if left := time.Until(ends); left > 0 {
						return lastsFor(left, conn), nil
					}
					return lastsFor(time.Hour, conn), nil
				},
			}
			running.Go(func() {
				if err := connector.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		// All reconnect within the wait that has grown during the outage, and a margin.
		time.Sleep(time.Until(ends.Add(away + reconnectCeiling)))
		mu.Lock()
		defer mu.Unlock()
		if connected != agents {
			t.Errorf("%d of %d agents are back %v after the gateway is", connected, agents, reconnectCeiling)
		}
		busiest, total := 0, 0
		for _, n := range attempts {
			busiest, total = max(busiest, n), total+n
		}
		if first := attempts[0] + attempts[1]; first > 0 {
			t.Errorf("%d agents tried within %v of the end, under the floor of the waits", first, reconnectFloor)
		}
		// The first waits spread over eight windows. Twice the average share is far beyond chance.
		if limit := 2 * agents / 8; busiest > limit {
			t.Errorf("%d attempts within %v, want at most %d", busiest, window, limit)
		}
		// 1, 2, 4 and 8 s at most: four waits or a few more, if they are short, fill ten seconds.
		if total > 10*agents {
			t.Errorf("%d attempts of %d agents", total, agents)
		}
		cancel()
		running.Wait()
	})
}
