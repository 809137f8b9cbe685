// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	// peerProtocol is the ALPN protocol between gateways.
	peerProtocol = "fleetgate-peer/1"
	// peerTimeout limits the setup of a link.
	peerTimeout = 10 * time.Second
	// maxPeerLinks limits the links that other gateways make to this one.
	maxPeerLinks = 64
	// maxPeerHandshakes limits the connections of one address that have not proved that they are a
	// gateway's.
	maxPeerHandshakes = 16
	// maxPeerMembers limits the members that another gateway may announce.
	maxPeerMembers = 20_000
	// onlyHop is the number of hops of a relayed stream. A gateway forwards dials of its own
	// callers, but never those of another gateway.
	onlyHop = 1
)

// Peers connects the gateways of one hub. Each dials every other, learns which members' tunnels
// that one holds, and forwards dials for them, once.
type Peers struct {
	registry *Registry
	// name distinguishes this gateway from the others.
	name string
	tls  *tls.Config

	// mu guards the following fields.
	mu sync.Mutex
	// links are the gateways that are linked, by name.
	links map[string]*peerLink
	// declared are the gateways that should be linked, by address.
	declared map[string]*declaredPeer
	// accepted counts the links that others have made.
	accepted int

	// reporting guards reported and is held during calls of changed, which keeps them in order. It is
	// locked before mu.
	reporting sync.Mutex
	changed   func(replicas int)
	reported  int

	missing func(address string, why error)
}

// PeerOptions are what Peers needs; all except OnChange are required.
type PeerOptions struct {
	// Name is unique among the gateways, also after a restart of this one: agents hold tunnels to
	// gateways of different names.
	Name string
	// Certificate is this gateway's, for both ends of a link.
	Certificate func() (*tls.Certificate, error)
	// Roots verify the other gateways, which all use ServerName. It is called for each link.
	Roots      func() *x509.CertPool
	ServerName string
	// OnChange receives the number of gateways, including this one, when it is no longer 1 and
	// whenever it changes. Optional.
	OnChange func(replicas int)
	// OnMissing receives a serving gateway to which there is no link, and why, after half a minute
	// and then every quarter of an hour. It must not block. Optional.
	OnMissing func(address string, why error)
}

// NewPeers adds peers to a registry. Run and Serve connect them.
func NewPeers(r *Registry, o PeerOptions) *Peers {
	verify := func(state tls.ConnectionState) error { return verifyPeer(state, o) }
	p := &Peers{registry: r, name: o.Name, links: map[string]*peerLink{}, changed: o.OnChange, missing: o.OnMissing, reported: 1}
	if p.changed == nil {
		p.changed = func(int) {}
	}
	if p.missing == nil {
		p.missing = func(string, error) {}
	}
	p.tls = &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{peerProtocol}, DynamicRecordSizingDisabled: true,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.Certificate() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.Certificate() },
		// verifyPeer verifies both directions in the same way, because gateways present their
		// serving certificate as clients too.
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true, VerifyConnection: verify,
	}
	r.setPeers(p)
	return p
}

// verifyPeer accepts certificates that the gateways' own CA signed for the gateways' own name.
func verifyPeer(state tls.ConnectionState, o PeerOptions) error {
	if len(state.PeerCertificates) == 0 || state.NegotiatedProtocol != peerProtocol {
		return errors.New("the other side is no gateway")
	}
	intermediates := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		intermediates.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: o.Roots(), Intermediates: intermediates, DNSName: o.ServerName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	})
	return err
}

// Serve accepts links of other gateways until ctx ends.
func (p *Peers) Serve(ctx context.Context, listener net.Listener) error {
	guard := NewGuard(listener, maxPeerHandshakes)
	stop := context.AfterFunc(ctx, func() { _ = guard.Close() })
	defer stop()
	var links sync.WaitGroup
	defer links.Wait()
	for {
		conn, err := guard.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listening for other gateways: %w", err)
		}
		links.Go(func() { p.serveLink(ctx, conn, guard) })
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

// Run keeps links to the gateways, which may change at any time, until ctx ends. This gateway's own
// address may be among them.
func (p *Peers) Run(ctx context.Context, peers <-chan []Peer) error {
	var links sync.WaitGroup
	defer links.Wait()
	links.Go(func() { p.registry.keepBalanced(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case wanted := <-peers:
			for address, d := range p.declare(wanted) {
				linkCtx, stop := context.WithCancel(ctx)
				d.stop = stop
				links.Go(func() {
					defer stop()
					p.keep(linkCtx, address, d)
				})
			}
		}
	}
}

// keep holds a link to one address, and re-establishes it with delays.
func (p *Peers) keep(ctx context.Context, address string, d *declaredPeer) {
	failures := 0
	report := &linkReport{address: address}
	for ctx.Err() == nil {
		began := time.Now()
		err := p.link(ctx, address, func(link *peerLink) {
			report.established(ctx)
			p.setLink(d, link)
		})
		if ctx.Err() != nil {
			return
		}
		p.setState(d, stateAfter(err))
		if errors.Is(err, errOwnAddress) {
			return
		}
		if time.Since(began) >= stableAfter {
			failures = 0
		}
		failures++
		wait := reconnectDelay(failures, reconnectFirst, rand.Float64())
		klog.FromContext(ctx).V(1).Info("No link to another gateway", "address", address, "reason", err.Error(), "retryAfter", wait.Round(time.Millisecond))
		if p.isMissing(d) {
			report.failed(ctx, p.missing, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// errOwnAddress is why a gateway keeps no link to itself, errLinkedAlready why it keeps no second
// one to another gateway.
var (
	errOwnAddress    = errors.New("the address is this gateway's own")
	errLinkedAlready = errors.New("the gateway is linked already")
)
