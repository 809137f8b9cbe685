// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Allow lists what may be dialed on a member besides its API server. The zero value allows nothing.
// Networks other than TCP, such as unix sockets, cannot be allowed.
type Allow struct{ rules []rule }

// rule allows one host, or the addresses of one network, at one port or at any.
type rule struct {
	// host is a name in lower case; empty if network counts.
	host    string
	network netip.Prefix
	// port 0 is every port.
	port uint16
}

// ParseAllow reads rules of the form host:port, address:port or network:port, where the network is
// a CIDR and the port may be *: db.example.com:5432, 10.0.0.0/8:10250, [fd00::/8]:*.
func ParseAllow(rules []string) (Allow, error) {
	var a Allow
	for _, text := range rules {
		r, err := parseRule(text)
		if err != nil {
			return Allow{}, fmt.Errorf("reading %q as host:port or network:port: %w", text, err)
		}
		a.rules = append(a.rules, r)
	}
	return a, nil
}

func parseRule(text string) (rule, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return rule{}, err
	}
	r := rule{host: normalHost(host)}
	if port != "*" {
		if r.port, err = parsePort(port); err != nil {
			return rule{}, err
		}
	}
	if strings.Contains(host, "/") {
		if r.network, err = netip.ParsePrefix(host); err != nil {
			return rule{}, err
		}
		r.host = ""
		return r, nil
	}
	if address, err := netip.ParseAddr(host); err == nil {
		address = address.Unmap()
		r.host, r.network = "", netip.PrefixFrom(address, address.BitLen())
		return r, nil
	}
	if r.host == "" || strings.ContainsAny(r.host, "*@[] ") {
		return rule{}, errors.New("the host is neither a name nor an address")
	}
	return r, nil
}

func parsePort(text string) (uint16, error) {
	// No service names, signs or leading zeros: each port has one spelling.
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || text != strconv.FormatUint(port, 10) {
		return 0, fmt.Errorf("%q is not a port from 1 to 65535", printable(text))
	}
	return uint16(port), nil
}

// normalHost is a name as DNS compares it: without case and without the final dot.
func normalHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ".") }

// dialAddress is a requested address.
type dialAddress struct {
	host string
	// ip is valid when the host is one. Its other spellings (octal, hexadecimal, fewer numbers, a
	// zone) are treated as names, and names match only a rule with the same name.
	ip   netip.Addr
	port uint16
}

func parseAddress(text string) (dialAddress, error) {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return dialAddress{}, errors.New("an address is of the form host:port")
	}
	a := dialAddress{host: normalHost(host)}
	if a.port, err = parsePort(port); err != nil {
		return dialAddress{}, err
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		a.ip = ip.Unmap()
	}
	if a.host == "" {
		return dialAddress{}, errors.New("an address has a host")
	}
	return a, nil
}

func (a dialAddress) String() string {
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port)))
}

// has is true if an address may be dialed as it is written.
func (a Allow) has(address string) bool {
	parsed, err := parseAddress(address)
	return err == nil && a.allows(parsed)
}

func (a Allow) allows(address dialAddress) bool {
	for _, r := range a.rules {
		if r.port != 0 && r.port != address.port {
			continue
		}
		if r.host != "" && r.host == address.host || r.network.IsValid() && address.ip.IsValid() && r.network.Contains(address.ip) {
			return true
		}
	}
	return false
}

// resolve returns the one IP address to dial for an allowed address. A name is looked up only once,
// so that the checked address is the dialed one. It must not resolve to the local host or to a
// link-local address, unless a rule has that very network.
func (a Allow) resolve(ctx context.Context, resolver *net.Resolver, address string) (netip.AddrPort, error) {
	parsed, err := parseAddress(address)
	if err != nil {
		return netip.AddrPort{}, err
	}
	if !a.allows(parsed) {
		return netip.AddrPort{}, errNotAllowed
	}
	if parsed.ip.IsValid() {
		return netip.AddrPortFrom(parsed.ip, parsed.port), nil
	}
	found, err := resolver.LookupNetIP(ctx, "ip", parsed.host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("looking up %s: %w", parsed.host, err)
	}
	for _, ip := range found {
		ip = ip.Unmap()
		if isPublic(ip) || a.allows(dialAddress{ip: ip, port: parsed.port}) {
			return netip.AddrPortFrom(ip, parsed.port), nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%w: %s leads to a loopback or link-local address", errNotAllowed, parsed.host)
}

var errNotAllowed = errors.New("this address is not among those that may be dialed")

// isPublic is true for an address that is not local to this machine or its link.
func isPublic(ip netip.Addr) bool {
	return !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsLinkLocalUnicast() && !ip.IsMulticast()
}

// hostOf is the host of host:port, or empty for any other text.
func hostOf(text string) string {
	host, _, err := net.SplitHostPort(text)
	if err != nil {
		return ""
	}
	return host
}
