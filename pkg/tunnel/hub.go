// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/pkg/tunnel/native"
)

const (
	// maxResponseHeader and maxResponseBody limit the hub's response.
	maxResponseHeader = 64 << 10
	maxResponseBody   = 64 << 10
)

// HubDialer opens sessions through the hub's API server, with an upgraded request to the aggregated
// API. Use its Dial in a [Connector].
type HubDialer struct {
	// URL of the member's tunnel:
	// https://<hub>/apis/tunnel.fleetgate.io/v1alpha1/namespaces/fleet-member-<member>/tunnels/<member>/proxy.
	URL string
	// TLS verifies the hub; nil trusts the system's roots. It is not changed.
	TLS *tls.Config
	// Token returns the bearer token for one attempt. It is sent only in that request, after the
	// hub is verified.
	Token func(ctx context.Context) (string, error)
	// DialContext makes the connection below TLS; nil dials directly.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout limits one attempt as a whole; 0 is 20 s.
	Timeout time.Duration
}

// HubError is the hub's refusal of an agent.
type HubError struct {
	// StatusCode is the HTTP status.
	StatusCode int
	// Message is that of the Kubernetes Status in the response; empty without one.
	Message string
}

func (e *HubError) Error() string {
	text := fmt.Sprintf("the hub answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if e.Message != "" {
		text += ": " + e.Message
	}
	if remedy := e.remedy(); remedy != "" {
		text += " (" + remedy + ")"
	}
	return text
}

// remedy names the remedy for refusals that a retry might not fix.
func (e *HubError) remedy() string {
	switch e.StatusCode {
	case http.StatusUnauthorized:
		return "the agent's hub credential is expired or revoked; if this lasts, register the member again with a valid token"
	case http.StatusForbidden:
		return "this agent's identity is not allowed to serve this member; compare the member's name with spec.identity of its MemberCluster on the hub"
	case http.StatusNotFound:
		return "the hub has no such member, or the gateway's API tunnel.fleetgate.io is not installed there"
	case http.StatusServiceUnavailable:
		return "the gateway on the hub is not available; see kubectl get apiservice v1alpha1.tunnel.fleetgate.io there"
	}
	return ""
}

// Dial opens one connection on which a session can start. A response other than the upgrade is a
// [HubError].
func (d *HubDialer) Dial(ctx context.Context) (net.Conn, error) {
	return d.open(ctx, UpgradeProtocol)
}

// open switches to a protocol on a new connection.
func (d *HubDialer) open(ctx context.Context, protocol string) (net.Conn, error) {
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = 20 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	target, err := url.Parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("parsing the hub's URL: %w", err)
	}
	if target.Scheme != "https" || target.Host == "" {
		return nil, fmt.Errorf("the hub's URL %s is not of the form https://host/path", target.Redacted())
	}
	conn, err := d.connect(ctx, target)
	if err != nil {
		return nil, err
	}
	// Connect first: no token is created if the gateway is unreachable.
	token, err := d.Token(ctx)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", errNoToken, err)
	}
	upgraded, err := upgrade(ctx, conn, target, token, protocol)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("opening a tunnel at %s: %w", target.Host, err)
	}
	return upgraded, nil
}

// connect returns a verified TLS connection with HTTP/1.1: HTTP/2 has no upgrade.
func (d *HubDialer) connect(ctx context.Context, target *url.URL) (*tls.Conn, error) {
	address := target.Host
	if target.Port() == "" {
		address = net.JoinHostPort(target.Hostname(), "443")
	}
	dial := d.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	raw, err := dial(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub at %s: %w", address, err)
	}
	conn := tls.Client(native.Batch(raw), d.tlsConfig(target.Hostname()))
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("verifying the hub at %s: %w", address, err)
	}
	return conn, nil
}

func (d *HubDialer) tlsConfig(host string) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if d.TLS != nil {
		config = d.TLS.Clone()
	}
	if config.ServerName == "" {
		config.ServerName = host
	}
	config.NextProtos = []string{"http/1.1"}
	config.DynamicRecordSizingDisabled = true
	return config
}

// upgrade sends the request and reads the response, until ctx ends.
func upgrade(ctx context.Context, conn net.Conn, target *url.URL, token, protocol string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	upgraded, err := exchange(conn, target, token, protocol)
	if !stop() {
		return nil, context.Cause(ctx)
	}
	return upgraded, err
}

func exchange(conn net.Conn, target *url.URL, token, protocol string) (net.Conn, error) {
	req := &http.Request{
		Method: http.MethodPost,
		URL:    target,
		Host:   target.Host,
		Header: http.Header{
			"Authorization": {"Bearer " + token},
			"Connection":    {"Upgrade"},
			"Upgrade":       {protocol},
			"User-Agent":    {"fleetgate-agent"},
			"Accept":        {"application/json"},
		},
	}
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("sending the request: %w", err)
	}
	limited := &io.LimitedReader{R: conn, N: maxResponseHeader}
	reader := bufio.NewReader(limited)
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		limited.N = maxResponseBody
		return nil, hubError(resp)
	}
	if !hasToken(resp.Header, "Upgrade", protocol) {
		return nil, errors.New("the hub switched to another protocol than " + protocol)
	}
	return readAhead(conn, reader), nil
}

// hubError reads the Kubernetes Status of a refusal, if there is one.
func hubError(resp *http.Response) error {
	defer resp.Body.Close()
	var status metav1.Status
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBody))
	// If the body is unreadable or not a Status, the code alone still says most of it.
	if err != nil || json.Unmarshal(body, &status) != nil || status.Kind != "Status" {
		status = metav1.Status{}
	}
	return &HubError{StatusCode: resp.StatusCode, Message: Printable(status.Message, maxMessageLength)}
}
