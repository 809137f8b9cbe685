// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// private is a registry in front of s that requires a password.
func (s *server) private(t *testing.T, password func() string) string {
	t.Helper()
	target := &url.URL{Scheme: "http", Host: s.host}
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, given, _ := r.BasicAuth(); user != "gateway" || given != password() {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		httputil.NewSingleHostReverseProxy(target).ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	return strings.TrimPrefix(listening.URL, "http://")
}

func writeCredentials(t *testing.T, path, host, password string) {
	t.Helper()
	text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("gateway:"+password)))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFetch_AuthenticatesToPrivateRegistry(t *testing.T) {
	s := serve(t)
	s.push(t, "charts/cni", "1.0.0", []byte("packed"), nil)
	s.push(t, "charts/cni", "2.0.0", []byte("newer"), nil)
	password := "first"
	host := s.private(t, func() string { return password })
	path := filepath.Join(t.TempDir(), "config.json")
	writeCredentials(t, path, host, password)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := NewRegistries([]string{plain + host}, path, clock)
	source := helmchart.Source{Chart: helmchart.SchemeOCI + host + "/charts/cni", Version: "1.0.0"}
	if packed, err := r.Fetch(t.Context(), source); err != nil || string(packed) != "packed" {
		t.Fatalf("fetched %q, %v", packed, err)
	}
	password = "second"
	source.Version = "2.0.0"
	if _, err := r.Fetch(t.Context(), source); err == nil {
		t.Error("fetched with a password that counts no more")
	}
	writeCredentials(t, path, host, password)
	if packed, err := r.Fetch(t.Context(), source); err != nil || string(packed) != "newer" {
		t.Errorf("after the file was replaced: fetched %q, %v", packed, err)
	}
	// Another registry does not get the password, and the registry refuses requests without it.
	writeCredentials(t, path, "registry.example.org", password)
	if _, err := NewRegistries([]string{plain + host}, path, clock).Fetch(t.Context(), source); err == nil {
		t.Error("fetched with another registry's password")
	}
	if _, err := NewRegistries([]string{plain + host}, "", clock).Fetch(t.Context(), source); err == nil {
		t.Error("fetched without a password")
	}
}

func TestReadCredentials_DoesNotQuoteInvalidFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	for name, text := range map[string]string{
		"no colon": `{"auths":{"registry.example.org":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("hunter2")) + `"}}}`,
		"no JSON":  "hunter2",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := ReadCredentials(path)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if _, err := ReadCredentials(path + ".missing"); err == nil {
		t.Error("a file that is not there was read")
	}
}
