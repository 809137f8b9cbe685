// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

// link establishes a link to one address, calls established, and uses the link until it ends.
func (p *Peers) link(ctx context.Context, address string, established func(*peerLink)) error {
	dialer := &net.Dialer{Timeout: peerTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	conn := tls.Client(native.Batch(raw), p.tls)
	handshakeCtx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	if err := conn.HandshakeContext(handshakeCtx); err != nil {
		_ = raw.Close()
		return err
	}
	mux := native.New(conn, native.Gateway, native.Options{MaxStreams: 2 * defaultMaxStreams, Budget: p.registry.unread})
	stop := context.AfterFunc(ctx, func() { _ = mux.Close() })
	defer stop()
	defer mux.Close()
	announcements, err := mux.Accept(handshakeCtx)
	if err != nil {
		return err
	}
	return p.follow(mux, announcements, established)
}

// follow reads the members that the other gateway holds.
func (p *Peers) follow(mux *native.Multiplexer, announcements net.Conn, established func(*peerLink)) error {
	reader := bufio.NewReaderSize(announcements, 2*MaxTargetLength)
	name, err := readLine(reader)
	if err != nil {
		return err
	}
	if name == p.name {
		return errOwnAddress
	}
	link := &peerLink{session: &nativeSession{Multiplexer: mux}, since: time.Now(), members: map[string]struct{}{}}
	if !p.add(name, link) {
		return fmt.Errorf("%w: %q", errLinkedAlready, Printable(name, MaxTargetLength))
	}
	defer p.remove(name)
	established(link)
	for {
		line, err := readLine(reader)
		if err != nil {
			return err
		}
		known, err := link.update(line)
		if err != nil {
			return err
		}
		if known {
			p.registry.sessionChanges.note(line[1:], time.Now())
		}
	}
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("reading the members of another gateway: %w", err)
	}
	return string(line[:len(line)-1]), nil
}

func (p *Peers) add(name string, link *peerLink) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links[name] != nil {
		return false
	}
	p.links[name] = link
	return true
}

func (p *Peers) remove(name string) {
	p.mu.Lock()
	gone := p.links[name]
	delete(p.links, name)
	p.mu.Unlock()
	for member := range gone.members { // not modified any more
		p.registry.sessionChanges.note(member, time.Now())
	}
}

// peerLink is another gateway.
type peerLink struct {
	session *nativeSession
	// since is when the link was established.
	since time.Time

	// mu guards members.
	mu      sync.Mutex
	members map[string]struct{}
}

// update applies a line: + or - and a member's name. It returns whether the other gateway already had
// a session of the member.
func (l *peerLink) update(line string) (known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(line) < 2 {
		return false, errors.New("another gateway announced no member")
	}
	member := line[1:]
	_, known = l.members[member]
	switch {
	case line[0] == '-':
		delete(l.members, member)
	case line[0] != '+':
		return known, errors.New("another gateway speaks a later version")
	case !known && len(l.members) >= maxPeerMembers:
		return known, fmt.Errorf("another gateway announced more than %d members", maxPeerMembers)
	default:
		l.members[member] = struct{}{}
	}
	return known, nil
}

func (l *peerLink) has(member string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.members[member]
	return ok
}

// load is the number of members that have a session there.
func (l *peerLink) load() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.members)
}

func (r *Registry) setPeers(p *Peers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers, r.loads = p, p.loads
}

// peerLinks are the links over which the member can be reached, in random order to share the load.
func (r *Registry) peerLinks(member string) []*peerLink {
	r.mu.RLock()
	p := r.peers
	r.mu.RUnlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var links []*peerLink
	for _, link := range p.links {
		if link.has(member) {
			links = append(links, link)
		}
	}
	// The order of a small map is not evenly distributed.
	rand.Shuffle(len(links), func(i, j int) { links[i], links[j] = links[j], links[i] })
	return links
}

// errPeerUnresponsive is returned by a dial if the only gateways with a session of the member do not
// respond.
var errPeerUnresponsive = fmt.Errorf("%w: %w: the replica of the gateway that has its tunnel does not respond", ErrNotConnected, ErrUnresponsive)

// dialPeers dials over the gateways that have a session of the member. here is the error of this gateway,
// which is returned if no other has one.
func (r *Registry) dialPeers(ctx context.Context, member, target string, here error) (net.Conn, error) {
	for _, link := range r.peerLinks(member) {
		if link.session.Unresponsive() {
			here = errPeerUnresponsive
			continue
		}
		h := headerFor(ctx, target)
		h.member, h.hops = member, onlyHop
		conn, err := link.session.dialRelayed(ctx, h, r.relayedData(member))
		if err == nil {
			return &relayedConn{
				Conn: conn, meter: r.metrics.of(member), remote: addr(member + "/" + target),
				probe: probe{session: link.session, member: member, opened: time.Now(), sessionChanges: &r.sessionChanges},
			}, nil
		}
		if ctx.Err() != nil || isFinal(err) && !isRefusedAs(err, NotHere) {
			return nil, err
		}
		switch {
		case errors.Is(err, ErrUnresponsive):
			here = errPeerUnresponsive
		case isRefusedAs(err, UnknownTarget):
			here = err
		}
	}
	return nil, here
}

// dialRelayed opens a stream of another gateway's session.
func (s *nativeSession) dialRelayed(ctx context.Context, h header, d *dataPath) (net.Conn, error) {
	if o := d.offer(h.target); o != nil {
		return s.dialData(ctx, h, d, o)
	}
	return s.dialHeader(ctx, h, nil)
}

// relayedConn is a stream of another gateway's session, with the member's name as its address.
type relayedConn struct {
	net.Conn
	probe
	meter  *meter
	remote addr
}

func (c *relayedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.meter.received.Add(float64(n))
	return n, err
}

func (c *relayedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.meter.sent.Add(float64(n))
	return n, err
}

// CloseWrite ends the direction to the member; reading continues.
func (c *relayedConn) CloseWrite() error { return closeWrite(c.Conn) }

// Reset abandons the stream.
func (c *relayedConn) Reset() error {
	abandon(c.Conn)
	return nil
}

// OnFailure calls f when the stream fails.
func (c *relayedConn) OnFailure(f func()) { onFailure(c.Conn, f) }

func (c *relayedConn) LocalAddr() net.Addr  { return addr("gateway") }
func (c *relayedConn) RemoteAddr() net.Addr { return c.remote }
