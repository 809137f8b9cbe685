// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// forwardProxy answers one CONNECT with what answer says and then carries bytes.
func forwardProxy(t *testing.T, answer func(*http.Request) string) (address string, asked <-chan *http.Request) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests := make(chan *http.Request, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		request, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		requests <- request
		if _, err := io.WriteString(conn, answer(request)); err != nil {
			return
		}
		_, _ = io.Copy(conn, conn)
	}()
	return listener.Addr().String(), requests
}

func through(address, user string) ProxyFunc {
	proxy := &url.URL{Scheme: "http", Host: address}
	if user != "" {
		proxy.User = url.UserPassword(user, "pass")
	}
	return http.ProxyURL(proxy)
}

func TestDialThroughAsksForTheAddressAndNothingElse(t *testing.T) {
	address, asked := forwardProxy(t, func(*http.Request) string { return "HTTP/1.1 200 Connection established\r\n\r\n" })
	conn, err := DialThrough(through(address, "me"))(t.Context(), "tcp", "hub.example:6443")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	request := <-asked
	if request.Method != http.MethodConnect || request.Host != "hub.example:6443" {
		t.Errorf("the proxy was asked %s %s", request.Method, request.Host)
	}
	if got := request.Header.Get("Proxy-Authorization"); got != "Basic bWU6cGFzcw==" {
		t.Errorf("credentials %q", got)
	}
	if request.Header.Get("Authorization") != "" {
		t.Error("the hub's credential went to the proxy")
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 5)
	if _, err := io.ReadFull(conn, back); err != nil || string(back) != "hello" {
		t.Errorf("got %q, %v", back, err)
	}
}

func TestDialThroughSaysWhyTheProxyRefuses(t *testing.T) {
	tests := map[string]struct{ answer, want string }{
		"a no":              {"HTTP/1.1 403 Forbidden\r\n\r\n", "403"},
		"something else":    {"SSH-2.0-x\r\n", "reading the answer"},
		"an endless header": {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxProxyAnswer), "reading the answer"},
		"words of its own":  {"HTTP/1.1 200 OK\r\n\r\nhello", "before it was asked"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			address, _ := forwardProxy(t, func(*http.Request) string { return tc.answer })
			conn, err := DialThrough(through(address, ""))(t.Context(), "tcp", "hub.example:6443")
			if err == nil {
				_ = conn.Close()
				t.Fatal("connected")
			}
			if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), address) {
				t.Errorf("error %q does not say %q and %s", err, tc.want, address)
			}
		})
	}
}

func TestDialThroughEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address, _ := forwardProxy(t, func(*http.Request) string {
		cancel()
		return ""
	})
	if conn, err := DialThrough(through(address, ""))(ctx, "tcp", "hub.example:6443"); err == nil {
		_ = conn.Close()
		t.Error("connected")
	}
}

func TestDialThroughNoProxy(t *testing.T) {
	address, _ := forwardProxy(t, func(*http.Request) string { return "" })
	none := func(*http.Request) (*url.URL, error) { return nil, nil }
	conn, err := DialThrough(none)(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
