// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// Members of one fleet may have API servers at different addresses, as seen by their agents.
func TestAgentServer_UsesAPIServerAddressOfMemberCluster(t *testing.T) {
	answering := func(word string) string {
		return startTCP(t, "tcp", "127.0.0.1:0", func(c *net.TCPConn) { _, _ = io.WriteString(c, word) })
	}
	fleet := map[string]string{"own": answering("own"), "wrong": "no-port"}
	g := startGateway(t, gatewayOptions{agents: func(o *AgentServerOptions) {
		o.APIServer = answering("all")
		o.APIServerOf = func(_ context.Context, member string) (string, error) { return fleet[member], nil }
	}})
	for member, want := range map[string]string{"own": "own", "other": "all"} {
		go g.upstream(t, member).serveLikeUpstream()
		conn, err := g.registry.DialMember(t.Context(), member, tunnel.APIServer)
		if err != nil {
			t.Fatalf("dialing %s: %v", member, err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Errorf("member %s answers %q, %v, want %q", member, got, err, want)
		}
	}
	go g.upstream(t, "wrong").serveLikeUpstream()
	conn, err := g.registry.DialMember(t.Context(), "wrong", tunnel.APIServer)
	if err == nil {
		_ = conn.Close()
	}
	if want := "no-port, which its MemberCluster has for the API server of member wrong, is not host:port, with a port from 1 to 65535"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("dialing where no address is: %v", err)
	}
}

func TestIsAddress_RequiresHostAndPort(t *testing.T) {
	for text, want := range map[string]bool{
		"10.0.0.1:6443": true, "kubernetes.default.svc:443": true, "[fd00::1]:6443": true,
		"10.0.0.1": false, ":6443": false, "api:https": false, "api:0": false, "api:99999": false, "api:-1": false, "": false,
	} {
		if got := IsAddress(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
