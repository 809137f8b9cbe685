// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
)

// portTries is how many ports are tried until one is free in both families.
const portTries = 20

// listenFunc is net.ListenConfig.Listen.
type listenFunc func(ctx context.Context, network, address string) (net.Listener, error)

// listenOnLoopback takes one port on all of loopback. Browsers look for names below localhost
// at ::1 before 127.0.0.1: whoever else on the machine had the port there would be sent the
// one-time key, and the cookie. So a port that is another's in one family is not used in the
// other.
func listenOnLoopback(ctx context.Context, listen listenFunc) ([]net.Listener, error) {
	hosts, err := loopbackHosts()
	if err != nil {
		return nil, err
	}
	for range portTries {
		var listeners []net.Listener
		if listeners, err = onOnePort(ctx, listen, hosts); err == nil {
			return listeners, nil
		}
	}
	return nil, fmt.Errorf("listening on loopback: %w", err)
}

// loopbackHosts are the addresses that browsers may try. ::1 is not among them only where the
// machine does not have it, so that nobody else can listen there either.
func loopbackHosts() ([]string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("reading the machine's addresses: %w", err)
	}
	hosts := []string{"127.0.0.1"}
	if slices.ContainsFunc(addresses, func(a net.Addr) bool {
		of, ok := a.(*net.IPNet)
		return ok && of.IP.Equal(net.IPv6loopback)
	}) {
		hosts = append(hosts, net.IPv6loopback.String())
	}
	return hosts, nil
}

// onOnePort listens on any port of the first host, and on the same one of the others.
func onOnePort(ctx context.Context, listen listenFunc, hosts []string) ([]net.Listener, error) {
	var listeners []net.Listener
	port := 0
	for _, host := range hosts {
		listener, err := listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return nil, errors.Join(err, closeAll(listeners))
		}
		listeners, port = append(listeners, listener), listener.Addr().(*net.TCPAddr).Port
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) error {
	var problems []error
	for _, listener := range listeners {
		problems = append(problems, listener.Close())
	}
	return errors.Join(problems...)
}
