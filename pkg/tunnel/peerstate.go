// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// Peer is the address of a gateway, which may be this one.
type Peer struct {
	Address string
	// Serving is true while the gateway accepts agents. A gateway that does not, because it starts
	// or stops, is linked but not counted.
	Serving bool
}

const (
	// peerGrace is how long a link may be missing before it is reported: gateways restart.
	peerGrace = 30 * time.Second
	// peerReport is how often a missing link is reported.
	peerReport = 15 * time.Minute
)

// declaredPeer is a gateway that this one should have a link to.
type declaredPeer struct {
	serving bool
	state   linkState
	// link is the established link, or the last one.
	link *peerLink
	stop context.CancelFunc
}

type linkState int

const (
	// connecting is the state before the first attempt has ended. The address may be this
	// gateway's own, so it is not counted yet.
	connecting linkState = iota
	established
	broken
	// redundant is an address of this gateway, or another one of a linked gateway.
	redundant
)

// missing is true if there should be a link and is none.
func (d *declaredPeer) missing() bool { return d.serving && d.state == broken }

func (p *Peers) isMissing(d *declaredPeer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return d.missing()
}

// declare replaces the addresses, and returns those that are new.
func (p *Peers) declare(wanted []Peer) (added map[string]*declaredPeer) {
	defer p.reportCount()
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := map[string]*declaredPeer{}
	added = map[string]*declaredPeer{}
	for _, peer := range wanted {
		d := p.declared[peer.Address]
		if d == nil {
			d = &declaredPeer{}
			added[peer.Address] = d
		}
		d.serving = peer.Serving
		kept[peer.Address] = d
	}
	for address, d := range p.declared {
		if kept[address] == nil {
			d.stop()
		}
	}
	p.declared = kept
	return added
}

func (p *Peers) setState(d *declaredPeer, state linkState) {
	p.mu.Lock()
	d.state = state
	p.mu.Unlock()
	p.reportCount()
}

func (p *Peers) setLink(d *declaredPeer, link *peerLink) {
	p.mu.Lock()
	d.link = link
	p.mu.Unlock()
	p.setState(d, established)
}

// stateAfter is the state of an address whose link has ended, or could not be established.
func stateAfter(err error) linkState {
	if errors.Is(err, errOwnAddress) || errors.Is(err, errLinkedAlready) {
		return redundant
	}
	return broken
}

// Replicas is the number of gateways, including this one. A gateway to which there is no link
// counts too: agents need a session to it all the more.
func (p *Peers) Replicas() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 1
	for _, d := range p.declared {
		if d.state == established || d.missing() {
			count++
		}
	}
	return count
}

// loads are the numbers of members with sessions at the other serving gateways. known is false if
// one of them is not connected, does not respond, or was connected only recently: agents may be on
// their way to it.
func (p *Peers) loads() (loads []int, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range p.declared {
		if !d.serving || d.state == redundant {
			continue
		}
		if d.state != established || time.Since(d.link.since) < balanceSettles || d.link.session.Unresponsive() {
			return nil, false
		}
		loads = append(loads, d.link.load())
	}
	return loads, true
}

// MissingLinks is the number of gateways to which there should be a link and is none.
func (p *Peers) MissingLinks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, d := range p.declared {
		if d.missing() {
			count++
		}
	}
	return count
}

// reportCount reports the number of gateways if it has changed.
func (p *Peers) reportCount() {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.registry.metrics.peersMissing.Set(float64(p.MissingLinks()))
	if count := p.Replicas(); count != p.reported {
		p.reported = count
		p.changed(count)
	}
}

// linkReport reports that a link is missing, and that it is established again.
type linkReport struct {
	address string
	// since is when the link was lost, reported when that was reported last.
	since, reported time.Time
}

func (r *linkReport) failed(ctx context.Context, missing func(string, error), err error) {
	now := time.Now()
	if r.since.IsZero() {
		r.since = now
	}
	if now.Sub(r.since) < peerGrace || !r.reported.IsZero() && now.Sub(r.reported) < peerReport {
		return
	}
	r.reported = now
	klog.FromContext(ctx).Error(err, "Could not link to another replica; requests for members that are connected only there fail", "address", r.address, "since", r.since)
	missing(r.address, err)
}

func (r *linkReport) established(ctx context.Context) {
	if !r.reported.IsZero() {
		klog.FromContext(ctx).Info("Linked to another replica again", "address", r.address)
	}
	*r = linkReport{address: r.address}
}
