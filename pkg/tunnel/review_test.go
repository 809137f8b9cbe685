// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/native"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// reviewedSession starts a session with a credential; the result of serving it arrives on ended.
func reviewedSession(t *testing.T, c tunnel.Credential) (r *tunnel.Registry, agent *native.Multiplexer, ended chan error) {
	t.Helper()
	r = tunneltest.NewRegistry(t, tunnel.Options{})
	gateway, far := net.Pipe()
	agent = native.New(far, native.Agent, native.Options{})
	t.Cleanup(func() { _ = agent.Close() })
	ended = make(chan error, 1)
	go func() { ended <- r.ServeReviewed(t.Context(), "one", gateway, c) }()
	synctest.Wait()
	return r, agent, ended
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestReview_SessionWithExpiredCredentialDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, agent, ended := reviewedSession(t, tunnel.Credential{Expires: time.Now().Add(5 * time.Minute)})
		time.Sleep(3 * time.Minute)
		if isClosed(agent.Draining()) {
			t.Error("the agent is asked to reconnect long before the credential expires")
		}
		stream, err := r.DialEagerly(t.Context(), "one", "a")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		if !isClosed(agent.Draining()) {
			t.Error("the agent is not asked to reconnect before the credential expires")
		}
		time.Sleep(time.Minute)
		if _, err := r.DialEagerly(t.Context(), "one", "a"); !tunnel.IsNotConnected(err) {
			t.Errorf("a dial with the expired credential: %v, want ErrNotConnected", err)
		}
		if len(ended) != 0 {
			t.Fatal("a stream from before was cut")
		}
		_ = stream.Close()
		if err := <-ended; !errors.Is(err, tunnel.ErrSessionClosed) {
			t.Errorf("the session ended with %v", err)
		}
	})
}

func TestReview_EndsSessionWithStreamADayAfterExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, agent, ended := reviewedSession(t, tunnel.Credential{Expires: time.Now().Add(time.Minute)})
		if _, err := r.DialEagerly(t.Context(), "one", "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour)
		if len(ended) != 0 {
			t.Error("the stream was cut within a day")
		}
		time.Sleep(2 * time.Minute)
		if len(ended) != 1 || !isClosed(agent.Done()) {
			t.Error("a session without a valid credential continues")
		}
	})
}

// The account of an agent is watched, but a session could outlast by months the token that opened it.
func TestReview_AgentProvesItsIdentityEachDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, agent, ended := reviewedSession(t, tunnel.Credential{StillValid: func(context.Context) (bool, error) { return true, nil }})
		time.Sleep(11 * time.Hour)
		if isClosed(agent.Draining()) {
			t.Error("the agent is asked to reconnect within hours")
		}
		time.Sleep(13 * time.Hour)
		if !isClosed(agent.Draining()) {
			t.Error("the agent is not asked to reconnect within a day")
		}
		time.Sleep(time.Minute)
		if len(ended) != 1 {
			t.Error("an idle session continues")
		}
	})
}

func TestReview_EndsSessionOfRevokedAgent(t *testing.T) {
	for name, calls := range map[string]int64{"during admission": 0, "later": 3} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var called atomic.Int64
				_, agent, ended := reviewedSession(t, tunnel.Credential{StillValid: func(context.Context) (bool, error) {
					return called.Add(1) <= calls, nil
				}})
				if err := <-ended; !errors.Is(err, tunnel.ErrSessionClosed) {
					t.Errorf("the session ended with %v", err)
				}
				<-agent.Done()
			})
		})
	}
}

func TestReview_ErrorEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, ended := reviewedSession(t, tunnel.Credential{StillValid: func(context.Context) (bool, error) {
			return false, errors.New("the hub is unreachable")
		}})
		time.Sleep(time.Hour)
		if !r.Connected("one") || len(ended) != 0 {
			t.Error("the session has ended")
		}
	})
}

func TestPort_FollowsCAsOfClients(t *testing.T) {
	ca, before, after := newAuthority(t), newAuthority(t), newAuthority(t)
	var current atomic.Pointer[authority]
	current.Store(before)
	r := tunneltest.NewRegistry(t, tunnel.Options{})
	address := startPort(t, r, ca, func(p *tunnel.Port) {
		p.ClientCAs = func() (*x509.CertPool, error) { return current.Load().pool(), nil }
	})
	dialer := portDialer(address, "/tunnels/one", ca.pool(), "")
	dialer.TLS.Certificates = []tls.Certificate{before.issue(t, "agent-of-one")}
	conn, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	eventually(t, func() bool { return r.Connected("one") })
	current.Store(after)
	if again, err := dialer.Dial(t.Context()); err == nil {
		_ = again.Close()
		t.Error("a certificate of the previous CA opened a tunnel")
	}
	dialer.TLS.Certificates = []tls.Certificate{after.issue(t, "agent-of-one")}
	again, err := dialer.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	tunneltest.Eventually(t, "the tunnel of the previous CA has ended", func() bool { return !r.Connected("one") })
}

func TestPort_ReviewsOnlyTokensThatNobodyWatches(t *testing.T) {
	for name, watched := range map[string]bool{"watched": true, "not watched": false} {
		t.Run(name, func(t *testing.T) {
			ca, r := newAuthority(t), tunneltest.NewRegistry(t, tunnel.Options{})
			var tokens, reviews atomic.Int64
			address := startPort(t, r, ca, func(p *tunnel.Port) {
				p.Watched = func(user, member string) bool { return watched && user == "agent-of-one" && member == "one" }
				authenticate, isAgentOf := p.Authenticate, p.IsAgentOf
				p.Authenticate = func(ctx context.Context, token string) (string, time.Time, bool, error) {
					tokens.Add(1)
					return authenticate(ctx, token)
				}
				p.IsAgentOf = func(ctx context.Context, user, member string) (bool, error) {
					defer reviews.Add(1)
					return isAgentOf(ctx, user, member)
				}
			})
			conn, err := portDialer(address, "/tunnels/one", ca.pool(), "good").Dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			// Once for its admission, and once as soon as the session is registered.
			tunneltest.Eventually(t, "the session was reviewed", func() bool { return reviews.Load() >= 2 })
			want := int64(2)
			if watched {
				want = 1
			}
			if got := tokens.Load(); got != want {
				t.Errorf("the token was authenticated %d times, want %d", got, want)
			}
		})
	}
}
