// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// acceptFirst and acceptCeiling limit the wait after a temporary failure of Accept.
	acceptFirst   = 5 * time.Millisecond
	acceptCeiling = time.Second
	// subnet is the prefix of IPv6 addresses that count as one: a client has at least so many.
	subnet = 64
)

// Guard is a listener for a public port. It retries Accept while the process has no free file
// descriptor. It closes connections of an address that has too many without a TLS session, so that
// one client does not use up descriptors and handshakes.
type Guard struct {
	net.Listener
	limit   int
	closed  chan struct{}
	closing sync.Once

	// mu guards the following fields.
	mu sync.Mutex
	// pending are the addresses of connections without a TLS session, byHost counts them.
	pending map[string]string
	byHost  map[string]int
}

// NewGuard limits the connections of one address for which Admitted was not called.
func NewGuard(l net.Listener, limit int) *Guard {
	return &Guard{Listener: l, limit: limit, closed: make(chan struct{}), pending: map[string]string{}, byHost: map[string]int{}}
}

// Accept implements net.Listener.
func (g *Guard) Accept() (net.Conn, error) {
	wait := acceptFirst
	for {
		conn, err := g.Listener.Accept()
		if err != nil {
			if !isTemporary(err) || !g.sleep(wait) {
				return nil, err
			}
			if wait == acceptFirst {
				klog.Background().Error(err, "Could not accept a connection; retrying", "address", g.Addr().String())
			}
			wait = min(2*wait, acceptCeiling)
			continue
		}
		if g.enter(conn.RemoteAddr()) {
			return &guardedConn{Conn: conn, guard: g}, nil
		}
		klog.Background().V(2).Info("Closed a connection: its address has too many without a TLS session", "from", conn.RemoteAddr().String(), "limit", g.limit)
		_ = conn.Close()
		wait = acceptFirst
	}
}

// isTemporary is the decision of net/http.
func isTemporary(err error) bool {
	var network net.Error
	//lint:ignore SA1019 Nothing else tells a lack of descriptors from a closed listener.
	return errors.As(err, &network) && network.Temporary()
}

// sleep is false if the listener was closed.
func (g *Guard) sleep(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-g.closed:
		return false
	}
}

// Close implements net.Listener.
func (g *Guard) Close() error {
	g.closing.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

// hostOf is the address that is limited.
func hostOf(remote net.Addr) string {
	from, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return remote.String()
	}
	if host := from.Addr().Unmap(); host.Is4() {
		return host.String()
	}
	prefix, _ := from.Addr().WithZone("").Prefix(subnet) // It is an IPv6 address.
	return prefix.String()
}

func (g *Guard) enter(remote net.Addr) bool {
	host := hostOf(remote)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byHost[host] >= g.limit {
		return false
	}
	g.byHost[host]++
	g.pending[remote.String()] = host
	return true
}

// Admitted records that the connection from an address has a TLS session, or was closed.
func (g *Guard) Admitted(remote net.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	host, pending := g.pending[remote.String()]
	if !pending {
		return
	}
	delete(g.pending, remote.String())
	if g.byHost[host]--; g.byHost[host] == 0 {
		delete(g.byHost, host)
	}
}

type guardedConn struct {
	net.Conn
	guard  *Guard
	closed sync.Once
}

// NetConn returns the connection below.
func (c *guardedConn) NetConn() net.Conn { return c.Conn }

// Close implements net.Conn. The address may be that of another connection afterwards.
func (c *guardedConn) Close() error {
	c.closed.Do(func() { c.guard.Admitted(c.RemoteAddr()) })
	return c.Conn.Close()
}
