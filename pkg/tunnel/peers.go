// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

const (
	// peerProtocol is what gateways agree on by ALPN among themselves.
	peerProtocol = "fleetgate-peer/1"
	// peerTimeout bounds the making of a link.
	peerTimeout = 10 * time.Second
	// maxPeerLinks bounds the links that other gateways make to this one.
	maxPeerLinks = 64
	// maxPeerMembers bounds what another gateway may say that it holds.
	maxPeerMembers = 20_000
	// onlyHop is the number of hops of a relayed stream: a gateway passes on what its
	// own callers ask for, and never what another gateway does.
	onlyHop = 1
)

// Peers connects the gateways of one hub: each dials every other, is told which
// members' tunnels that one holds, and passes dials for them on, once.
type Peers struct {
	// Registry is this gateway's; NewPeers sets it.
	registry *Registry
	// name tells this gateway from the others.
	name string
	tls  *tls.Config

	// mu guards the fields below it.
	mu sync.Mutex
	// links are the gateways that were dialed and answered, by name.
	links map[string]*peerLink
	// accepted counts the links that others have made.
	accepted int
	changed  func(replicas int)
}

// PeerOptions are what Peers needs; all but OnChange is required.
type PeerOptions struct {
	// Name tells this gateway from the others, also after a restart: agents hold
	// tunnels to gateways of different names.
	Name string
	// Certificate is this gateway's, for both ends of a link.
	Certificate func() (*tls.Certificate, error)
	// Roots verify the other gateways, who all go by ServerName.
	Roots      *x509.CertPool
	ServerName string
	// OnChange is told how many gateways there are, this one included. Optional.
	OnChange func(replicas int)
}

// NewPeers lets a registry pass dials on. Run and Serve connect it.
func NewPeers(r *Registry, o PeerOptions) *Peers {
	verify := func(state tls.ConnectionState) error { return verifyPeer(state, o) }
	p := &Peers{registry: r, name: o.Name, links: map[string]*peerLink{}, changed: o.OnChange}
	if p.changed == nil {
		p.changed = func(int) {}
	}
	p.tls = &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{peerProtocol}, DynamicRecordSizingDisabled: true,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.Certificate() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.Certificate() },
		// Both directions are verified below, in the same way: gateways show the
		// certificate with which they serve.
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, VerifyConnection: verify,
	}
	r.setPeers(p)
	return p
}

// verifyPeer believes certificates that the gateways' own authority signed for the
// gateways' own name.
func verifyPeer(state tls.ConnectionState, o PeerOptions) error {
	if len(state.PeerCertificates) == 0 || state.NegotiatedProtocol != peerProtocol {
		return errors.New("the other side is no gateway")
	}
	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: o.Roots, Intermediates: intermediates, DNSName: o.ServerName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}

// Serve takes links of other gateways until ctx ends.
func (p *Peers) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var links sync.WaitGroup
	defer links.Wait()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listening for other gateways: %w", err)
		}
		if !p.enter() {
			_ = conn.Close()
			continue
		}
		links.Go(func() {
			defer p.leave()
			p.serveLink(ctx, conn)
		})
	}
}

func (p *Peers) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.accepted >= maxPeerLinks {
		return false
	}
	p.accepted++
	return true
}

func (p *Peers) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accepted--
}

// serveLink tells another gateway what this one holds, and dials for it.
func (p *Peers) serveLink(ctx context.Context, raw net.Conn) {
	conn := tls.Server(native.Batch(raw), p.tls)
	shaking, cancel := context.WithTimeout(ctx, peerTimeout)
	err := conn.HandshakeContext(shaking)
	cancel()
	if err != nil {
		_ = raw.Close()
		klog.FromContext(ctx).V(1).Info("Refused a link of another gateway", "from", raw.RemoteAddr().String(), "reason", err.Error())
		return
	}
	carrier := native.New(conn, native.Agent, native.Options{MaxStreams: 2 * defaultMaxStreams})
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = carrier.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	defer carrier.Close()
	running.Go(func() { p.announce(ctx, carrier) })
	for {
		stream, err := carrier.Accept(ctx)
		if err != nil {
			return
		}
		running.Go(func() { p.relay(ctx, stream) })
	}
}

// announce writes the name of this gateway, and then a line for each member that has
// its first session here or loses its last.
func (p *Peers) announce(ctx context.Context, carrier *native.Carrier) {
	stream, err := carrier.Open(ctx, []byte(p.name+"\n"))
	if err != nil {
		return
	}
	defer stream.Close()
	lines := newLines()
	defer p.registry.Subscribe(lines.add)()
	for {
		select {
		case <-lines.some:
		case <-carrier.Done():
			return
		}
		if _, err := io.WriteString(stream, lines.take()); err != nil {
			return
		}
	}
}

// relay serves one dial of another gateway with a session of this one, and with
// nothing else: what a third gateway holds is asked there.
func (p *Peers) relay(ctx context.Context, stream net.Conn) {
	defer stream.Close()
	_ = stream.SetDeadline(time.Now().Add(headerTime))
	h, err := readHeader(stream)
	_ = stream.SetDeadline(time.Time{})
	if err != nil {
		refuse(stream, err)
		return
	}
	conn, err := p.dialFor(ctx, h)
	if err != nil {
		refuse(stream, err)
		return
	}
	if _, err := stream.Write(encodeAnswer(codeOK, "")); err != nil {
		abandon(conn)
		return
	}
	_ = pipe(ctx, stream, conn)
}

func (p *Peers) dialFor(ctx context.Context, h header) (net.Conn, error) {
	if h.member == "" || h.hops != onlyHop {
		return nil, &RefusedError{Code: Malformed, Message: fmt.Sprintf("a stream of another gateway names a member and has %d hop, this one has %d", onlyHop, h.hops)}
	}
	limit := p.registry.options.DialTimeout
	if h.limit > 0 {
		limit = min(h.limit, limit)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := p.registry.dialHere(ctx, h.member, h.target, false)
	if errors.Is(err, ErrNotConnected) {
		return nil, &RefusedError{Code: NotHere, Message: err.Error()}
	}
	return conn, err
}

// Run keeps links to the gateways at addresses, which may send other ones at any
// time, until ctx ends. This gateway's own address may be among them.
func (p *Peers) Run(ctx context.Context, addresses <-chan []string) error {
	running := map[string]context.CancelFunc{}
	var links sync.WaitGroup
	defer links.Wait()
	for {
		select {
		case <-ctx.Done():
			for _, stop := range running {
				stop()
			}
			return nil
		case wanted := <-addresses:
			for address, stop := range running {
				if !slices.Contains(wanted, address) {
					stop()
					delete(running, address)
				}
			}
			for _, address := range wanted {
				if running[address] == nil {
					linkCtx, stop := context.WithCancel(ctx)
					running[address] = stop
					links.Go(func() { p.keep(linkCtx, address) })
				}
			}
		}
	}
}

// keep holds a link to one address, and makes it again with waits.
func (p *Peers) keep(ctx context.Context, address string) {
	failures := 0
	for ctx.Err() == nil {
		began := time.Now()
		err := p.link(ctx, address)
		if errors.Is(err, errOwnAddress) || ctx.Err() != nil {
			return
		}
		if time.Since(began) >= stableAfter {
			failures = 0
		}
		failures++
		wait := reconnectDelay(failures, rand.Float64())
		klog.FromContext(ctx).V(1).Info("No link to another gateway", "address", address, "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// errOwnAddress is why a gateway keeps no link to itself.
var errOwnAddress = errors.New("the address is this gateway's own")

// link makes one and uses it until it ends.
func (p *Peers) link(ctx context.Context, address string) error {
	dialer := &net.Dialer{Timeout: peerTimeout}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	conn := tls.Client(native.Batch(raw), p.tls)
	shaking, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	if err := conn.HandshakeContext(shaking); err != nil {
		_ = raw.Close()
		return err
	}
	carrier := native.New(conn, native.Gateway, native.Options{MaxStreams: 2 * defaultMaxStreams})
	stop := context.AfterFunc(ctx, func() { _ = carrier.Close() })
	defer stop()
	defer carrier.Close()
	told, err := carrier.Accept(shaking)
	if err != nil {
		return err
	}
	return p.follow(carrier, told)
}

// follow reads what the other gateway holds.
func (p *Peers) follow(carrier *native.Carrier, told net.Conn) error {
	reader := bufio.NewReaderSize(told, 2*MaxTargetLength)
	name, err := readLine(reader)
	if err != nil {
		return err
	}
	if name == p.name {
		return errOwnAddress
	}
	link := &peerLink{session: &nativeSession{Carrier: carrier}, members: map[string]struct{}{}}
	if !p.add(name, link) {
		return fmt.Errorf("gateway %q is linked already", printable(name, MaxTargetLength))
	}
	defer p.remove(name)
	for {
		line, err := readLine(reader)
		if err != nil {
			return err
		}
		if err := link.update(line); err != nil {
			return err
		}
	}
}

func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return "", fmt.Errorf("reading what another gateway holds: %w", err)
	}
	return string(line[:len(line)-1]), nil
}

func (p *Peers) add(name string, link *peerLink) bool {
	p.mu.Lock()
	_, exists := p.links[name]
	if !exists {
		p.links[name] = link
	}
	replicas := len(p.links) + 1
	p.mu.Unlock()
	if !exists {
		p.changed(replicas)
	}
	return !exists
}

func (p *Peers) remove(name string) {
	p.mu.Lock()
	delete(p.links, name)
	replicas := len(p.links) + 1
	p.mu.Unlock()
	p.changed(replicas)
}

// Replicas is how many gateways there are, this one included.
func (p *Peers) Replicas() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links) + 1
}

// peerLink is another gateway.
type peerLink struct {
	session *nativeSession

	// mu guards members.
	mu      sync.Mutex
	members map[string]struct{}
}

// update takes a line: + or - and a member's name.
func (l *peerLink) update(line string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(line) < 2 {
		return errors.New("another gateway told of no member")
	}
	switch member := line[1:]; {
	case line[0] == '-':
		delete(l.members, member)
	case line[0] != '+':
		return errors.New("another gateway speaks a later version")
	case len(l.members) >= maxPeerMembers:
		return fmt.Errorf("another gateway told of more than %d members", maxPeerMembers)
	default:
		l.members[member] = struct{}{}
	}
	return nil
}

func (l *peerLink) holds(member string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.members[member]
	return ok
}

func (r *Registry) setPeers(p *Peers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.peers = p
}

// peerLinks are those over which the member can be reached, in any order: so they
// share the load.
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
		if link.holds(member) {
			links = append(links, link)
		}
	}
	return links
}

// dialPeers asks the gateways that hold a session of the member. here is why this one
// has none, the answer if no other has.
func (r *Registry) dialPeers(ctx context.Context, member, target string, here error) (net.Conn, error) {
	for _, link := range r.peerLinks(member) {
		h := headerFor(ctx, target)
		h.member, h.hops = member, onlyHop
		conn, err := link.session.dialHeader(ctx, h)
		if err == nil {
			return &relayedConn{Conn: conn, meter: r.metrics.of(member), remote: addr(member + "/" + target)}, nil
		}
		var refused *RefusedError
		if ctx.Err() != nil || errors.As(err, &refused) && refused.Code != NotHere && refused.Code != Busy {
			return nil, err
		}
	}
	return nil, here
}

// relayedConn is a stream of another gateway's session, with the member's name for an
// address.
type relayedConn struct {
	net.Conn
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

// CloseWrite ends the direction towards the member; reading goes on.
func (c *relayedConn) CloseWrite() error { return closeWrite(c.Conn) }

// Reset abandons the stream.
func (c *relayedConn) Reset() error {
	abandon(c.Conn)
	return nil
}

func (c *relayedConn) LocalAddr() net.Addr  { return addr("gateway") }
func (c *relayedConn) RemoteAddr() net.Addr { return c.remote }

// lines gathers what is to be announced. Only the latest word on a member counts.
type lines struct {
	// some gets a value when there is something to take.
	some chan struct{}

	// mu guards pending.
	mu      sync.Mutex
	pending map[string]bool
}

func newLines() *lines {
	return &lines{some: make(chan struct{}, 1), pending: map[string]bool{}}
}

func (l *lines) add(member string, connected bool) {
	l.mu.Lock()
	l.pending[member] = connected
	l.mu.Unlock()
	select {
	case l.some <- struct{}{}:
	default:
	}
}

func (l *lines) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var text []byte
	for member, connected := range l.pending {
		sign := byte('-')
		if connected {
			sign = '+'
		}
		text = append(append(append(text, sign), member...), '\n')
	}
	clear(l.pending)
	return string(text)
}
