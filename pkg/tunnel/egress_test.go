// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/tunneltest"
)

// forwardProxy serves CONNECT, reports the requested address and credential, and connects to to
// instead.
func forwardProxy(t *testing.T, secured *tls.Config, to string, asked chan<- string) string {
	t.Helper()
	return tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) {
		var conn net.Conn = c
		if secured != nil {
			conn = tls.Server(c, secured)
		}
		defer conn.Close()
		reader := bufio.NewReader(conn)
		req, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		asked <- req.Method + " " + req.Host + " " + req.Header.Get("Proxy-Authorization")
		far, err := net.Dial("tcp", to)
		if err != nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 502 Bad Gateway\r\n\r\n")
			return
		}
		defer far.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(far, reader); _ = far.Close() }()
		_, _ = io.Copy(conn, far)
	})
}

func TestEgress_UsesConfiguredProxy(t *testing.T) {
	ca := newAuthority(t)
	server := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) { _, _ = io.WriteString(c, "hello") })
	password := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:pass word"))
	for name, c := range map[string]struct {
		scheme, user, noProxy string
		// want is the address that the proxy is asked for, empty if it is not used.
		want string
	}{
		"by http":                     {"http", "", "", "CONNECT hub.example.com:443 "},
		"by https":                    {"https", "", "", "CONNECT hub.example.com:443 "},
		"with a password":             {"http", "user:pass%20word@", "", "CONNECT hub.example.com:443 " + password},
		"not for an excluded domain":  {"http", "", ".example.com", ""},
		"also when others are spared": {"http", "", "10.0.0.0/8,example.org", "CONNECT hub.example.com:443 "},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			var secured *tls.Config
			if c.scheme == "https" {
				secured = &tls.Config{Certificates: []tls.Certificate{ca.issue(t, "proxy.test")}}
			}
			proxy := forwardProxy(t, secured, server, asked)
			egress := tunnel.EgressOf(c.scheme+"://"+c.user+"proxy.test:3128", c.noProxy)
			egress.TLS = &tls.Config{RootCAs: ca.pool()}
			var direct bool
			egress.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				to := proxy
				if address != "proxy.test:3128" {
					direct, to = true, server
				}
				return new(net.Dialer).DialContext(ctx, network, to)
			}
			conn, err := egress.DialContext(t.Context(), "tcp", "hub.example.com:443")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if got, err := io.ReadAll(conn); string(got) != "hello" {
				t.Errorf("read %q, %v", got, err)
			}
			if direct != (c.want == "") {
				t.Errorf("dialed directly: %v", direct)
			}
			if c.want != "" {
				if got := <-asked; got != c.want {
					t.Errorf("the proxy was asked %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestEgress_ErrorContainsNoPassword(t *testing.T) {
	asked := make(chan string, 8)
	proxy := forwardProxy(t, nil, "127.0.0.1:1", asked)
	for name, url := range map[string]string{
		"a proxy that refuses":         "http://user:hunter2@" + proxy,
		"an unreachable proxy":         "http://user:hunter2@127.0.0.1:1",
		"a proxy that is not verified": "https://user:hunter2@" + proxy,
		"an unknown scheme":            "socks5://user:hunter2@" + proxy,
		"no URL":                       "http://user:hunter2@[::1",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tunnel.EgressOf(url, "").DialContext(t.Context(), "tcp", "hub.example.com:443")
			if err == nil || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want an error without the password", err)
			}
		})
	}
}

func TestEgress_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	silent := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) {
		_, _ = c.Read(make([]byte, 1))
		cancel()
		_, _ = io.Copy(io.Discard, c)
	})
	_, err := tunnel.EgressOf("http://"+silent, "").DialContext(ctx, "tcp", "hub.example.com:443")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// The proxy's certificate is not the gateway's.
func TestEgress_RefusesProxyThatInterceptsTLS(t *testing.T) {
	ca, intercepting := newAuthority(t), newAuthority(t)
	server := tunneltest.Serve(t, "127.0.0.1", func(c *net.TCPConn) {
		_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{intercepting.issue(t, portName)}}).Handshake()
	})
	asked := make(chan string, 1)
	proxy := forwardProxy(t, nil, server, asked)
	dialer := portDialer("hub.example.com:443", "/tunnels/one", ca.pool(), "a token that must stay secret")
	dialer.DialContext = tunnel.EgressOf("http://"+proxy, "").DialContext
	if _, err := dialer.Dial(t.Context()); err == nil {
		t.Error("the certificate of the proxy was believed")
	}
}
