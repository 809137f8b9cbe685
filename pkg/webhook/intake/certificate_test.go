// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
)

// selfSigned is a certificate that verifies only itself.
func selfSigned(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

func TestCertificate_OnlyOfTheNamedCA(t *testing.T) {
	apiServer := selfSigned(t, "api-server")
	ca, err := dynamiccertificates.NewStaticCAContent("ca", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: apiServer.Certificate[0]}))
	if err != nil {
		t.Fatal(err)
	}
	intake := NewServer(Options{ClientCA: ca})
	intake.Register("/validate", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	server := httptest.NewUnstartedServer(http.HandlerFunc(intake.ServeHTTP))
	server.TLS = intake.tls()
	server.StartTLS()
	defer server.Close()
	for name, c := range map[string]struct {
		shown []tls.Certificate
		code  int
	}{
		"the API server's":         {[]tls.Certificate{apiServer}, http.StatusAccepted},
		"another of the same name": {[]tls.Certificate{selfSigned(t, "api-server")}, http.StatusUnauthorized},
		"none":                     {nil, http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			transport, ok := server.Client().Transport.(*http.Transport)
			if !ok {
				t.Fatalf("%T", server.Client().Transport)
			}
			transport = transport.Clone()
			defer transport.CloseIdleConnections()
			transport.TLSClientConfig.Certificates = c.shown
			response, err := (&http.Client{Transport: transport}).Post(server.URL+"/validate", "application/json", strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if response.StatusCode != c.code {
				t.Errorf("%d, want %d", response.StatusCode, c.code)
			}
		})
	}
}
