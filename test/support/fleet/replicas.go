// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"fleetgate.io/fleetgate/test/support/env"
)

// Replicas of the gateway have addresses of their own on loopback, 127.0.0.1 and so
// on, with the same ports on each, as Pods have. With several, hub and agents reach
// them through a balancer at another address, as through a Service.

// address is that of a replica, counted from 0; there is one ::1 only.
func (f *Fleet) address(replica int) string {
	if f.IPv6 {
		return "::1"
	}
	return fmt.Sprintf("127.0.0.%d", replica+1)
}

// front is where the gateway is reached, whichever replica answers.
func (f *Fleet) front() string {
	if f.Replicas > 1 {
		return f.address(f.Replicas)
	}
	return f.address(0)
}

// externalName is front as a Service may be called, which an address of IPv6 is not.
func (f *Fleet) externalName() string {
	if f.IPv6 {
		return "localhost"
	}
	return f.front()
}

// peers are the other replicas.
func (f *Fleet) peers(replica int) (others []string, err error) {
	for i := range f.Replicas {
		if i == replica {
			continue
		}
		address := onPort(f.address(i), f.ports[portPeers])
		if f.PeerAddress != nil {
			if address, err = f.PeerAddress(replica, i, address); err != nil {
				return nil, err
			}
		}
		others = append(others, address)
	}
	return others, nil
}

// startReplicas starts the gateways after the first, and the balancer before all.
func (f *Fleet) startReplicas(ctx context.Context) error {
	for _, gateway := range f.Gateways[1 : len(f.Gateways)-f.Later] {
		f.Progress("hub: starting " + gateway.Name())
		if err := gateway.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startBalancers begins to lead the front's ports to the replicas.
func (f *Fleet) startBalancers() error {
	if f.Replicas < 2 {
		return nil
	}
	ports := []int{f.ports[portAPI], f.ports[portWebhooks]}
	if f.hasAgentsPort() {
		ports = append(ports, f.tunnelPort)
	}
	for _, port := range ports {
		b, err := f.newBalancer(port)
		if err != nil {
			return err
		}
		f.balancers = append(f.balancers, b)
	}
	return nil
}

// balancer hands connections to the replicas in turn; one that takes none is passed
// over. It lives in the process that started the fleet.
type balancer struct {
	fleet    *Fleet
	port     int
	listener net.Listener
	copying  sync.WaitGroup

	// mu guards the fields below it.
	mu      sync.Mutex
	turn    int
	conns   map[net.Conn]struct{}
	stopped bool
}

func (f *Fleet) newBalancer(port int) (*balancer, error) {
	listener, err := net.Listen("tcp", onPort(f.front(), port))
	if err != nil {
		return nil, fmt.Errorf("listening for the gateway's replicas: %w", err)
	}
	b := &balancer{fleet: f, port: port, listener: listener, conns: map[net.Conn]struct{}{}}
	b.copying.Go(b.accept)
	return b, nil
}

func (b *balancer) accept() {
	const pause = 50 * time.Millisecond
	for {
		conn, err := b.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // Of descriptors there are none left, for a moment.
			time.Sleep(pause)
			continue
		}
		b.copying.Go(func() { b.pass(conn) })
	}
}

// pass connects to a replica. While none takes connections there is nobody: the
// caller's is closed, as a Service without endpoints refuses it.
func (b *balancer) pass(near net.Conn) {
	defer near.Close()
	far := b.dial()
	if far == nil {
		return
	}
	defer far.Close()
	if !b.keep(near, far) {
		return
	}
	defer b.drop(near, far)
	var back sync.WaitGroup
	back.Go(func() { move(near, far) })
	move(far, near)
	back.Wait()
}

func (b *balancer) dial() net.Conn {
	const patience = 2 * time.Second
	b.mu.Lock()
	b.turn++
	first := b.turn
	b.mu.Unlock()
	for i := range b.fleet.Replicas {
		replica := (first + i) % b.fleet.Replicas
		conn, err := net.DialTimeout("tcp", onPort(b.fleet.address(replica), b.port), patience)
		if err == nil {
			return conn
		}
	}
	return nil
}

func (b *balancer) keep(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		b.conns[conn] = struct{}{}
	}
	return !b.stopped
}

func (b *balancer) drop(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range conns {
		delete(b.conns, conn)
	}
}

func (b *balancer) stop() {
	_ = b.listener.Close()
	b.mu.Lock()
	b.stopped = true
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.copying.Wait()
}

// move copies one direction and passes on its end; a broken one breaks the other. What the kernel
// would copy by itself costs two more descriptors in each direction, of which thousands of
// connections leave none.
func move(to, from net.Conn) {
	if _, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}); err != nil {
		_ = to.Close()
		_ = from.Close()
		return
	}
	_ = to.(*net.TCPConn).CloseWrite()
}

// GatewayMetricsOf is the URL of the metrics of a replica, counted from 0.
func (f *Fleet) GatewayMetricsOf(replica int) string {
	return "http://" + onPort(f.address(replica), f.ports[portMetrics]) + "/metrics"
}

// GatewayAPI is the URL at which clients that reach the gateway itself, not through
// the hub's API server, find it.
func (f *Fleet) GatewayAPI() string { return "https://" + onPort(f.front(), f.ports[portAPI]) }

// GatewayAPIOf is the same of one replica, counted from 0.
func (f *Fleet) GatewayAPIOf(replica int) string {
	return "https://" + onPort(f.address(replica), f.ports[portAPI])
}

// Remake starts a gateway again with the settings that the fleet has now, such as other
// GatewayArgs.
func (f *Fleet) Remake(ctx context.Context, replica int) error {
	if err := f.Gateways[replica].Stop(ctx); err != nil {
		return err
	}
	gateway, err := f.gatewayProcess(replica)
	if err != nil {
		return err
	}
	f.Gateways[replica] = gateway
	f.Gateway = f.Gateways[0]
	return gateway.Start(ctx)
}

// RemakeAgent is Remake of a member's agent.
func (f *Fleet) RemakeAgent(ctx context.Context, of *Member) error {
	if err := of.Agent.Stop(ctx); err != nil {
		return err
	}
	agent, err := f.agentProcess(of)
	if err != nil {
		return err
	}
	of.Agent = agent
	return agent.Start(ctx)
}

// MoveAgentsPort gives gateways that start later another port for agents. The others keep the
// former one, which leads to any process that listens there.
func (f *Fleet) MoveAgentsPort() error {
	ports, err := env.FreePorts(1)
	if err != nil {
		return fmt.Errorf("finding another port for agents: %w", err)
	}
	f.tunnelPort = ports[0]
	if f.Replicas < 2 {
		return nil
	}
	b, err := f.newBalancer(f.tunnelPort)
	if err == nil {
		f.balancers = append(f.balancers, b)
	}
	return err
}
