// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/test/support/forwardproxy"
)

func TestHubPath_UsesFormerRightOnlyWhenPathIsUnknown(t *testing.T) {
	answers := func(code int) error {
		return fmt.Errorf("opening a tunnel: %w", &tunnel.HubError{StatusCode: code})
	}
	away := errors.New("no route")
	tests := map[string]struct {
		now, former error
		// dialed is the number of paths tried; err is the result.
		dialed int
		err    error
		called bool
	}{
		"gateway of this version":                                {nil, nil, 1, nil, true},
		"gateway of the previous version":                        {answers(http.StatusBadRequest), nil, 2, nil, false},
		"hub with a Role of the previous version":                {answers(http.StatusForbidden), nil, 2, nil, false},
		"hub that does not serve the API yet":                    {answers(http.StatusNotFound), answers(http.StatusNotFound), 2, answers(http.StatusNotFound), false},
		"hub that rejects the agent":                             {answers(http.StatusForbidden), answers(http.StatusForbidden), 2, answers(http.StatusForbidden), false},
		"gateway of the previous version that rejects the agent": {answers(http.StatusBadRequest), answers(http.StatusForbidden), 2, answers(http.StatusForbidden), false},
		"rejected credential":                                    {answers(http.StatusUnauthorized), nil, 1, answers(http.StatusUnauthorized), false},
		"gateway that is down":                                   {answers(http.StatusServiceUnavailable), nil, 1, answers(http.StatusServiceUnavailable), false},
		"unreachable hub":                                        {away, nil, 1, away, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			dialed, called := 0, false
			path := func(err error) func(context.Context) (net.Conn, error) {
				return func(context.Context) (net.Conn, error) {
					dialed++
					if err != nil {
						return nil, err
					}
					here, there := net.Pipe()
					_ = there.Close()
					return here, nil
				}
			}
			road := &hubPath{now: path(tc.now), former: path(tc.former), byNamespace: func() { called = true }}
			conn, err := road.dial(t.Context())
			if (conn == nil) == (tc.err == nil) || fmt.Sprint(err) != fmt.Sprint(tc.err) {
				t.Errorf("got %v, %v, want error %v", conn, err, tc.err)
			}
			if dialed != tc.dialed || called != tc.called {
				t.Errorf("tried %d paths, byNamespace called: %t", dialed, called)
			}
		})
	}
}

func TestEgressTo_UsesProxyAndCAOfKubeconfig(t *testing.T) {
	hub := httptest.NewTLSServer(http.NotFoundHandler())
	defer hub.Close()
	address := hub.Listener.Addr().String()
	proxy := forwardproxy.Start(true)
	defer proxy.Close()
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	hubCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hub.Certificate().Raw})
	for name, tc := range map[string]struct {
		authorities []byte
		fails       bool
	}{
		"appended to the hub's": {append(hubCA, proxy.CA()...), false},
		"of somebody else":      {anotherAuthority(t), true},
	} {
		config := &rest.Config{Host: hub.URL, Proxy: http.ProxyURL(at), TLSClientConfig: rest.TLSClientConfig{CAData: tc.authorities}}
		hubTLS, err := rest.TLSConfigFor(config)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := egressTo(config, hubTLS, tunnel.EgressOf("", "*")).DialContext(t.Context(), "tcp", address)
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if diff := cmp.Diff([]string{"CONNECT " + address}, proxy.Asked()); diff != "" {
		t.Errorf("the proxy was asked (-want +got)\n%s", diff)
	}
}

// anotherAuthority returns a CA that signed none of the servers here.
func anotherAuthority(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
