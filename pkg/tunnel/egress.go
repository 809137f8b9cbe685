// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Egress connects the agent to the outside of its network: directly, or through a forward proxy
// with HTTP CONNECT. Its DialContext is used below TLS: a proxy sees only cipher text, and its own
// certificate is never accepted as the gateway's.
type Egress struct {
	// Proxy returns the proxy for an https URL, nil for none; see [EgressOf].
	Proxy func(*url.URL) (*url.URL, error)
	// TLS verifies proxies that are themselves reached with https; nil trusts the system's roots.
	TLS *tls.Config
	// Dial connects to the proxy, or to the address itself.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// EgressOf returns an Egress for values of the environment variables HTTPS_PROXY and NO_PROXY. User
// and password in the URL are sent only to the proxy.
func EgressOf(httpsProxy, noProxy string) *Egress {
	config := &httpproxy.Config{HTTPSProxy: httpsProxy, NoProxy: noProxy}
	return &Egress{Proxy: config.ProxyFunc(), Dial: new(net.Dialer).DialContext}
}

// DialContext connects to an address, host:port.
func (e *Egress) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	proxy, err := e.Proxy(&url.URL{Scheme: "https", Host: address})
	if err != nil {
		return nil, fmt.Errorf("choosing a proxy for %s: %w", address, withoutURL(err))
	}
	if proxy == nil {
		return e.Dial(ctx, network, address)
	}
	conn, err := e.connect(ctx, network, proxy)
	if err != nil {
		return nil, fmt.Errorf("connecting to proxy %s: %w", proxy.Host, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnelled, err := connectThrough(conn, proxy, address)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("requesting %s from proxy %s: %w", address, proxy.Host, err)
	}
	return tunnelled, nil
}

// withoutURL removes a URL from the error, because it may contain a password.
func withoutURL(err error) error {
	var urlError *url.Error
	if errors.As(err, &urlError) {
		return urlError.Err
	}
	return errors.New("its URL is not valid")
}

func (e *Egress) connect(ctx context.Context, network string, proxy *url.URL) (net.Conn, error) {
	var port string
	switch proxy.Scheme {
	case "http":
		port = "80"
	case "https":
		port = "443"
	default:
		return nil, fmt.Errorf("its scheme is %q: http and https are known", proxy.Scheme)
	}
	if proxy.Port() != "" {
		port = proxy.Port()
	}
	conn, err := e.Dial(ctx, network, net.JoinHostPort(proxy.Hostname(), port))
	if err != nil || proxy.Scheme == "http" {
		return conn, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.TLS != nil {
		config = e.TLS.Clone()
	}
	config.ServerName, config.NextProtos = proxy.Hostname(), []string{"http/1.1"}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secured, nil
}

func connectThrough(conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	req := &http.Request{
		Method: http.MethodConnect,
		URL:    &url.URL{Opaque: address},
		Host:   address,
		Header: http.Header{"User-Agent": {"fleetgate-agent"}},
	}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(&io.LimitedReader{R: conn, N: maxResponseHeader})
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return readAhead(conn, reader), nil
}
