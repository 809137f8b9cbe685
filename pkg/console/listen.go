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

// portTries limits the ports that are tried until one is free in both address families.
const portTries = 20

// listenFunc is net.ListenConfig.Listen.
type listenFunc func(ctx context.Context, network, address string) (net.Listener, error)

// listenOnLoopback binds one port on all loopback addresses. Browsers resolve names below localhost to
// ::1 before 127.0.0.1: another user's server with that port on ::1 would receive the one-time key
// and the cookie. So a port must be free in both address families.
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

// loopbackHosts are the addresses that browsers may try. ::1 is left out only if the machine does not
// have it: then nobody else can listen there either.
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
