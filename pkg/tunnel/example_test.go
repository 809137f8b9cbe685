// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// A gateway and an agent in one process, connected by a pipe.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// The gateway holds the sessions of its members.
	registry, err := tunnel.NewRegistry(tunnel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	connected := make(chan struct{})
	registry.Subscribe(func(member string, is bool) {
		if is {
			close(connected)
		}
	})

	// The agent serves HTTP only to the gateway.
	listener := tunnel.NewListener(tunnel.Agent)
	defer listener.Close()
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "hello from the member")
	})
	go func() { _ = http.Serve(listener, hello) }()
	connector := &tunnel.Connector{
		Member:  "member-1",
		Targets: map[string]tunnel.Target{tunnel.Agent: listener.Target()},
		Dial: func(context.Context) (net.Conn, error) {
			gateway, agent := net.Pipe()
			go func() { _ = registry.Serve(ctx, "member-1", gateway) }()
			return agent, nil
		},
	}
	go func() { _ = connector.Run(ctx) }()
	<-connected

	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return registry.DialMember(ctx, "member-1", tunnel.Agent)
		},
	}}
	resp, err := client.Get("http://agent/")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	// Output: hello from the member
}
