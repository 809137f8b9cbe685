// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	konnectivityclient "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"fleetgate.io/fleetgate/pkg/tunnel"
)

// dialerFunc is a Dialer for frontends.
type dialerFunc func(ctx context.Context, member, target string) (net.Conn, error)

func (f dialerFunc) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	return f(ctx, member, target)
}

func TestFrontendServer_RefusesWithReason(t *testing.T) {
	g := startGateway(t, gatewayOptions{frontends: func(o *FrontendServerOptions) {
		o.Domain = "fleet.example"
		o.Allow = mustAllow(t, "10.0.0.0/8:10250")
		authorize := o.Authorize
		o.Authorize = func(ctx context.Context, id Identity, member string) (bool, error) {
			if member == "unknown" {
				return false, errors.New("secret detail")
			}
			return authorize(ctx, id, member)
		}
		o.Dialer = dialerFunc(func(_ context.Context, member, target string) (net.Conn, error) {
			switch member {
			case "away":
				return nil, fmt.Errorf("dialing: %w", tunnel.ErrNotConnected)
			case "late":
				return nil, context.DeadlineExceeded
			}
			return nil, &tunnel.RefusedError{Code: tunnel.Unreachable, Message: member + " " + target + " refuses"}
		})
	}})
	for _, test := range []struct {
		name, user, serverName, address string
		status                          int
		says                            string
	}{
		{"a member without an agent", "root", "localhost", "away:443", http.StatusServiceUnavailable, "not connected"},
		{"a member that takes too long", "root", "localhost", "late:443", http.StatusGatewayTimeout, "deadline"},
		{"a member that refuses", "root", "localhost", "m:443", http.StatusBadGateway, "m apiserver refuses"},
		{"somebody without the right", "dialer-n", "localhost", "m:443", http.StatusForbidden, `cannot create tunnels/dial of member "m"`},
		{"a hub that cannot tell", "root", "localhost", "unknown:443", http.StatusServiceUnavailable, "cannot determine"},
		{"an address that is not allowed", "root", "m.fleet.example", "10.0.0.1:22", http.StatusForbidden, "not among those"},
		{"an address that is", "root", "m.fleet.example", "10.0.0.1:10250", http.StatusBadGateway, "m 10.0.0.1:10250 refuses"},
		{"an address without a member", "root", "localhost", "10.0.0.1:443", http.StatusBadRequest, "names no member"},
	} {
		t.Run(test.name, func(t *testing.T) {
			config := g.clientTLS(g.frontendCA.issue(t, test.user))
			config.ServerName = test.serverName
			_, err := connectTo(t.Context(), g.frontendPort, config, test.address, "")
			if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprint(test.status)) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("CONNECT was answered with: %v", err)
			}
			// Many clients show their users only the first line.
			if err != nil && strings.Count(err.Error(), test.says) != 2 {
				t.Errorf("the reason is not in the status and in the body: %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret detail") {
				t.Errorf("the answer shows what is not for frontends: %v", err)
			}
		})
	}
}

func TestProxyService_RefusesOtherNetworks(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	for _, protocol := range []string{"unix", "udp", "tcp4", "", protocolTarget} {
		f := g.frontendStream(t, "root")
		f.send(dialReq(protocol, "/var/run/docker.sock", 3))
		response := f.receiveType(client.PacketType_DIAL_RSP).GetDialResponse()
		if response.Random != 3 || !strings.Contains(response.Error, "only tcp") {
			t.Errorf("protocol %q was answered with %s", protocol, response)
		}
	}
}

func TestProxyService_DialCanBeCancelled(t *testing.T) {
	began, ended := make(chan struct{}), make(chan error, 1)
	g := startGateway(t, gatewayOptions{frontends: func(o *FrontendServerOptions) {
		o.Dialer = dialerFunc(func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(began)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		})
	}})
	f := g.frontendStream(t, "root")
	f.send(dialReq("tcp", "m:443", 9))
	<-began
	f.send(&client.Packet{Type: client.PacketType_DIAL_CLS, Payload: &client.Packet_CloseDial{CloseDial: &client.CloseDial{Random: 9}}})
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the dial ended with %v", err)
	}
}

func TestProxyService_EndsStreamWithoutDial(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	f := g.frontendStream(t, "root")
	for range maxStray {
		f.send(dataPacket(1, []byte("?")))
	}
	if err := f.stream.RecvMsg(new(client.Packet)); err == nil || !strings.Contains(err.Error(), "begins with a dial") {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestProxyService_ConfirmsClose(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	once, err := konnectivityclient.CreateSingleUseGrpcTunnelWithContext(t.Context(), t.Context(), "passthrough:///"+g.frontendPort, g.grpcOptions(t, "dialer-m")...)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := once.DialContext(t.Context(), "tcp", "m:443")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	<-once.Done()
}

func TestProxyService_UpstreamClientGetsReasonOfFailedDial(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	reusable, err := konnectivityclient.CreateGRPCTunnel(t.Context(), "passthrough:///"+g.frontendPort, g.grpcOptions(t, "dialer-m")...)
	if err != nil {
		t.Fatal(err)
	}
	defer reusable.Close()
	for address, says := range map[string]string{"m:443": "not connected", "n:443": "cannot create tunnels/dial"} {
		if _, err := reusable.DialContext(t.Context(), "tcp", address); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("dialing %s: %v", address, err)
		}
	}
}

func TestConnect_RefusesOtherMethods(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	transport := &http.Transport{TLSClientConfig: g.clientTLS(g.frontendCA.issue(t, "root"))}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + g.frontendPort + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET was answered with %s", response.Status)
	}
}

func TestConnect_AcceptsToken(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	conn, err := connectTo(t.Context(), g.frontendPort, g.clientTLS(), "m:443", "frontends:dialer-m")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	expectBytes(t, conn, "hello")
}

// Bytes that a frontend sends after its request, without waiting for the response, belong to the
// connection.
func TestConnect_BytesAfterRequestArrive(t *testing.T) {
	g := startGateway(t, gatewayOptions{})
	g.join(t, "m", toAPIServer(startTCP(t, "tcp", "127.0.0.1:0", echo)))
	conn, err := tls.Dial("tcp", g.frontendPort, g.clientTLS(g.frontendCA.issue(t, "root")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "CONNECT m:443 HTTP/1.1\r\nHost: m\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	expectBytes(t, conn, "HTTP/1.1 200 Connection established\r\n\r\nearly")
}

// The CA of a listener may identify a user, but must not grant the hub's privileged groups.
func TestCredentials_CertificateGrantsNoSystemGroups(t *testing.T) {
	got := ordinary([]string{"team", "system:masters", "system:nodes"})
	if diff := cmp.Diff([]string{"team"}, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
