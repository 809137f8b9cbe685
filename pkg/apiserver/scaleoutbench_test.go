// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// replica is one of several gateways behind a Service.
type replica struct {
	*tunnel.Registry
	peers     *tunnel.Peers
	api, peer string
	addresses chan []tunnel.Peer
	// replicas is the number of gateways that it knows; requests and relayed count those that it served.
	replicas, requests, relayed atomic.Int64
}

// service is several gateways, of which the first ones run.
type service struct {
	replicas []*replica
	running  atomic.Int64
}

// pick returns a gateway at random, as a Service does.
func (s *service) pick() *replica { return s.replicas[rand.Int64N(s.running.Load())] }

// scaleTo adds gateways until that many run. Each knows the others before it is found, as one that is
// not ready yet does.
func (s *service) scaleTo(b *testing.B, n int) {
	b.Helper()
	var peers []tunnel.Peer
	for _, r := range s.replicas[:n] {
		peers = append(peers, tunnel.Peer{Address: r.peer, Serving: true})
	}
	before, added := s.replicas[:s.running.Load()], s.replicas[s.running.Load():n]
	for _, r := range added {
		r.addresses <- peers
	}
	tunneltest.Eventually(b, "the new gateways know all", func() bool {
		return !slices.ContainsFunc(added, func(r *replica) bool { return r.replicas.Load() != int64(n) })
	})
	for _, r := range before {
		r.addresses <- peers
	}
	s.running.Store(int64(n))
}

// sessions are the numbers of members with a session at each gateway.
func (s *service) sessions(members map[string]*member) []int {
	all := make([]int, s.running.Load())
	for i := range all {
		for name := range members {
			if s.replicas[i].Connected(name) {
				all[i]++
			}
		}
	}
	return all
}

// newService starts n gateways, of which half run, and the agents of the members.
func newService(b *testing.B, n int, members map[string]*member) *service {
	b.Helper()
	s := &service{}
	ca := newAuthority(b)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		running.Wait()
	})
	for i := range n {
		r := newReplica(b, fmt.Sprint("gateway-", i), ca, members)
		s.replicas = append(s.replicas, r)
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		r.peer = listener.Addr().String()
		running.Go(func() { _ = r.peers.Serve(ctx, listener) })
		running.Go(func() { _ = r.peers.Run(ctx, r.addresses) })
	}
	s.scaleTo(b, n/2)
	for name, of := range members {
		agent := &tunnel.Connector{
			Member: name, Sessions: 2,
			Targets: map[string]tunnel.Target{
				tunnel.APIServer: tunnel.TCP(of.api.Listener.Addr().String()), tunnel.Agent: tunnel.TCP(of.agent.Listener.Addr().String()),
			},
			Dial: func(context.Context) (net.Conn, error) {
				gateway, agent := net.Pipe()
				r := s.pick()
				running.Go(func() { _ = r.Serve(ctx, name, gateway) })
				return agent, nil
			},
		}
		running.Go(func() { _ = agent.Run(ctx) })
	}
	return s
}

// newReplica starts a gateway that is linked to no other one yet.
func newReplica(b *testing.B, name string, ca *authority, members map[string]*member) *replica {
	b.Helper()
	pair, err := tls.X509KeyPair(ca.leaf("gateway.test"))
	if err != nil {
		b.Fatal(err)
	}
	r := &replica{addresses: make(chan []tunnel.Peer, 1)}
	r.replicas.Store(1)
	r.Registry = tunneltest.NewRegistry(b, tunnel.Options{Info: func() tunnel.Info {
		return tunnel.Info{Replica: name, Replicas: int(r.replicas.Load()), Members: len(members)}
	}})
	r.peers = tunnel.NewPeers(r.Registry, tunnel.PeerOptions{
		Name: name, ServerName: "gateway.test",
		Certificate: func() (*tls.Certificate, error) { return &pair, nil },
		Roots:       func() *x509.CertPool { return ca.pool() },
		OnChange: func(replicas int) {
			r.replicas.Store(int64(replicas))
			r.SendInfoAll()
		},
	})
	r.api = newGateway(b, members, unbounded, func(c *apiserver.Config) {
		c.Dialer, c.Liveness, c.NotConnected = r.Registry, r.Registry, tunnel.ErrNotConnected
		c.Replicas = func() int { return int(r.replicas.Load()) }
		c.Recorder = func(_ context.Context, record clustergateway.Record) {
			r.requests.Add(1)
			if !r.Connected(record.Member) {
				r.relayed.Add(1)
			}
		}
	}).address
	return r
}

// client keeps one connection of HTTP/2 to a gateway of the service, as the hub's API server does.
func (s *service) client(b *testing.B) *http.Client {
	var dialer tls.Dialer
	transport := &http.Transport{ForceAttemptHTTP2: true, DisableCompression: true}
	dialer.Config = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	transport.DialTLSContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", s.pick().api)
	}
	b.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// load sends requests one after another, at intervals, until ctx ends.
func (s *service) load(ctx context.Context, client *http.Client, members map[string]*member, interval time.Duration) error {
	names := slices.Collect(maps.Keys(members))
	for ctx.Err() == nil {
		url := "https://gateway.test/clusters/" + names[rand.IntN(len(names))] + "/api/v1/namespaces/shop/pods"
		if _, _, err := reads(ctx, client, url, "u", "application/json"); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	return nil
}

// scaleOut measures how sessions and requests spread over n gateways after half of them were added, and
// how long the sessions take: longest means that they still moved. Clients send requests meanwhile, over a
// connection each. Gateways, agents and members run in this process.
func scaleOut(b *testing.B, n int) {
	const members, clients, counted, longest = 8, 64, 10_000, 2 * time.Minute
	all := crowdOf(b, members, listing(1))
	s := newService(b, n, all)
	tunneltest.Eventually(b, "all agents are connected", func() bool { return total(s.sessions(all)) == members*min(2, n/2) })
	ctx, stop := context.WithCancel(b.Context())
	var loading sync.WaitGroup
	for range clients {
		client := s.client(b)
		loading.Go(func() {
			if err := s.load(ctx, client, all, 50*time.Millisecond); err != nil {
				b.Error(err)
			}
		})
	}
	for b.Loop() {
		began := time.Now()
		s.scaleTo(b, n)
		for !s.isBalanced(members, s.sessions(all)) && !b.Failed() && time.Since(began) < longest {
			time.Sleep(100 * time.Millisecond)
		}
		b.ReportMetric(time.Since(began).Seconds(), "s/balanced")
		for _, r := range s.replicas {
			r.requests.Store(0)
			r.relayed.Store(0)
		}
		for s.served() < counted && !b.Failed() {
			time.Sleep(100 * time.Millisecond)
		}
		s.report(b, s.sessions(all))
	}
	stop()
	loading.Wait()
	b.ReportMetric(0, "ns/op")
}

// isBalanced is true once each agent has all its sessions, and no gateway would ask agents to move.
func (s *service) isBalanced(members int, sessions []int) bool {
	const tenth = 10
	return total(sessions) == members*2 && slices.Max(sessions)-slices.Min(sessions) < 2+total(sessions)/len(sessions)/tenth
}

func (s *service) served() (n int64) {
	for _, r := range s.replicas {
		n += r.requests.Load()
	}
	return n
}

// report prints the extremes among the gateways.
func (s *service) report(b *testing.B, sessions []int) {
	b.ReportMetric(float64(slices.Min(sessions)), "least-sessions")
	b.ReportMetric(float64(slices.Max(sessions)), "most-sessions")
	var requests []int64
	var relayed, all int64
	for _, r := range s.replicas {
		requests = append(requests, r.requests.Load())
		relayed, all = relayed+r.relayed.Load(), all+r.requests.Load()
	}
	percent := func(n int64) float64 { return 100 * float64(n) / float64(all) }
	b.ReportMetric(percent(slices.Min(requests)), "least-requests-%")
	b.ReportMetric(percent(slices.Max(requests)), "most-requests-%")
	b.ReportMetric(percent(relayed), "relayed-%")
}

func total(all []int) (sum int) {
	for _, n := range all {
		sum += n
	}
	return sum
}
