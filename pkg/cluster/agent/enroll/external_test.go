// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// externalHub knows one token, and whether a MemberCluster names its user.
type externalHub struct {
	server *httptest.Server
	token  atomic.Value
	named  atomic.Bool
}

func startExternalHub(t *testing.T) *externalHub {
	t.Helper()
	h := &externalHub{}
	h.token.Store("first")
	h.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		code := http.StatusOK
		switch {
		case r.Header.Get("Authorization") != "Bearer "+h.token.Load().(string):
			code = http.StatusUnauthorized
		case !h.named.Load():
			code = http.StatusForbidden
		case r.URL.Path != "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/fleet-member-edge/internalmemberclusters/edge":
			code = http.StatusNotFound
		}
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, strings.ReplaceAll(http.StatusText(code), " ", ""), code)
	}))
	t.Cleanup(h.server.Close)
	return h
}

func (h *externalHub) config(tokenFile string) *rest.Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
	return &rest.Config{Host: h.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, BearerTokenFile: tokenFile}
}

func TestExternal_WaitsUntilAMemberClusterNamesTheIdentity(t *testing.T) {
	hub := startExternalHub(t)
	file := filepath.Join(t.TempDir(), "token")
	writeToken := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeToken("first")
	client, err := restClient(hub.config(file))
	if err != nil {
		t.Fatal(err)
	}
	e := NewExternal("edge", hub.config(file), clocktesting.NewFakeClock(time.Now()))

	if wait := e.try(t.Context(), client); wait != externalRetry || refusal.ReasonOf(e.Ready()) != RegistrationPending {
		t.Fatalf("before it is named: %v, again in %s", e.Ready(), wait)
	}
	if message := e.Ready().Error(); !strings.Contains(message, `MemberCluster "edge"`) || !strings.Contains(message, "spec.identity") {
		t.Errorf("message %q names no remedy", message)
	}
	hub.named.Store(true)
	if wait := e.try(t.Context(), client); wait != externalCheck || e.Ready() != nil {
		t.Fatalf("after it is named: %v, again in %s", e.Ready(), wait)
	}
	if member, err := e.Member(t.Context()); member != "edge" || err != nil {
		t.Errorf("member %q, %v", member, err)
	}

	hub.token.Store("second")
	writeToken("second")
	if token, err := e.Token(t.Context()); token != "second" || err != nil {
		t.Errorf("token %q, %v: the file was not read again", token, err)
	}
}

func TestExternal_NamesTheProblem(t *testing.T) {
	hub := startExternalHub(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("expired"), 0o600); err != nil {
		t.Fatal(err)
	}
	untrusted := hub.config(file)
	untrusted.CAData = nil
	away := hub.config(file)
	away.Host = "https://127.0.0.1:1"
	tests := map[string]struct {
		config *rest.Config
		want   string
	}{
		"a token that the hub rejects": {hub.config(file), CredentialRefused},
		"another CA":                   {untrusted, HubNotTrusted},
		"no server":                    {away, HubUnreachable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			client, err := restClient(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			e := NewExternal("edge", tc.config, clocktesting.NewFakeClock(time.Now()))
			trouble := e.check(t.Context(), client)
			if refusal.ReasonOf(trouble) != tc.want {
				t.Errorf("got %v, want %s", trouble, tc.want)
			}
			if trouble != nil && strings.Contains(trouble.Message, "expired\"") {
				t.Errorf("message %q repeats the token", trouble.Message)
			}
		})
	}
}
