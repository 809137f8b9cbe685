// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// ProxyFunc tells through which proxy a request goes; nil is none.
type ProxyFunc func(*http.Request) (*url.URL, error)

// DialThrough returns a dialer that reaches addresses the way requests to them go: through
// the proxy, with CONNECT, or directly. A nil proxy means those of the environment, as for
// every other client. TLS begins behind the proxy, which sees only the address.
func DialThrough(proxy ProxyFunc) func(ctx context.Context, network, address string) (net.Conn, error) {
	if proxy == nil {
		proxy = http.ProxyFromEnvironment
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		through, err := proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: address}})
		if err != nil {
			return nil, fmt.Errorf("finding the proxy for %s: %w", address, err)
		}
		if through == nil {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		conn, err := dialProxy(ctx, through)
		if err != nil {
			return nil, fmt.Errorf("reaching proxy %s: %w", through.Host, err)
		}
		if err := connect(ctx, conn, through, address); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("asking proxy %s for %s: %w", through.Host, address, err)
		}
		return conn, nil
	}
}

func dialProxy(ctx context.Context, proxy *url.URL) (net.Conn, error) {
	port := proxy.Port()
	switch {
	case port != "":
	case proxy.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}
	address := net.JoinHostPort(proxy.Hostname(), port)
	if proxy.Scheme == "https" {
		return (&tls.Dialer{Config: &tls.Config{MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// maxProxyAnswer bounds what a proxy may say before the connection is the hub's.
const maxProxyAnswer = 16 << 10

// connect asks the proxy to lead the connection to the address.
func connect(ctx context.Context, conn net.Conn, proxy *url.URL, address string) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+credentials)
	}
	if err := request.Write(conn); err != nil {
		return fmt.Errorf("sending the request: %w", err)
	}
	reader := bufio.NewReaderSize(&limitedConn{conn, maxProxyAnswer}, maxProxyAnswer)
	response, err := http.ReadResponse(reader, request)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s: see whether it lets this agent pass", response.Status)
	}
	if reader.Buffered() > 0 {
		return errors.New("it sent something before it was asked")
	}
	if !stop() {
		return context.Cause(ctx)
	}
	return nil
}

// limitedConn reads no more than so many bytes.
type limitedConn struct {
	net.Conn
	left int
}

func (l *limitedConn) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the answer is too long")
	}
	n, err := l.Conn.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
