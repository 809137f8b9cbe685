// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// server is a registry on loopback that counts requests.
type server struct {
	host     string
	requests atomic.Int32
}

func serve(t *testing.T) *server {
	t.Helper()
	s, handler := &server{}, registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			s.requests.Add(1)
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	s.host = strings.TrimPrefix(listening.URL, "http://")
	return s
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (s *server) send(t *testing.T, method, target, kind string, content []byte) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, target, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %s", method, target, response.Status)
	}
	return response
}

// push stores a chart as helm push does, and returns the digest of its manifest.
func (s *server) push(t *testing.T, repository, tag string, packed []byte, change func(*ocispec.Manifest)) string {
	t.Helper()
	base := "http://" + s.host + "/v2/" + repository
	var blobs []ocispec.Descriptor
	for _, blob := range []struct {
		kind    string
		content []byte
	}{{"application/vnd.cncf.helm.config.v1+json", []byte(`{"name":"x"}`)}, {layerType, packed}} {
		digest := digestOf(blob.content)
		s.send(t, http.MethodPost, base+"/blobs/uploads/?digest="+url.QueryEscape(digest), "application/octet-stream", blob.content)
		var d ocispec.Descriptor
		if err := json.Unmarshal(fmt.Appendf(nil, `{"mediaType":%q,"digest":%q,"size":%d}`, blob.kind, digest, len(blob.content)), &d); err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, d)
	}
	manifest := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: blobs[0], Layers: blobs[1:]}
	manifest.SchemaVersion = 2
	if change != nil {
		change(&manifest)
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, http.MethodPut, base+"/manifests/"+tag, ocispec.MediaTypeImageManifest, text)
	return digestOf(text)
}

func (s *server) source(repository, version string) helmchart.Source {
	return helmchart.Source{Chart: helmchart.SchemeOCI + s.host + "/" + repository, Version: version}
}

func TestFetch_CachesCharts(t *testing.T) {
	s := serve(t)
	digest := s.push(t, "charts/cni", "1.0.0_1", []byte("packed"), nil)
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	r := NewRegistries([]string{plain + s.host + "/charts"}, "", clock)
	source := s.source("charts/cni", "1.0.0+1")
	source.Digest = digest
	for range 3 {
		if packed, err := r.Fetch(t.Context(), source); err != nil || string(packed) != "packed" {
			t.Fatalf("fetched %q, %v", packed, err)
		}
	}
	before := s.requests.Load()
	if before > 3 {
		t.Errorf("the registry was asked %d times for tag, manifest and chart", before)
	}
	clock.SetTime(clock.Now().Add(2 * versionsFor))
	if packed, err := r.Fetch(t.Context(), source); err != nil || string(packed) != "packed" {
		t.Fatalf("fetched %q, %v", packed, err)
	}
	if requests := s.requests.Load() - before; requests != 1 {
		t.Errorf("after a while the registry was asked %d times, want once, for the tag", requests)
	}
	s.push(t, "charts/cni", "1.0.0_1", []byte("other"), nil)
	clock.SetTime(clock.Now().Add(2 * versionsFor))
	var problem *helmchart.Problem
	if _, err := r.Fetch(t.Context(), source); !errors.As(err, &problem) || !strings.Contains(err.Error(), "not "+digest) {
		t.Errorf("a tag that leads elsewhere: error = %v", err)
	}
	source.Digest = ""
	if packed, err := r.Fetch(t.Context(), source); err != nil || string(packed) != "other" {
		t.Errorf("fetched %q, %v", packed, err)
	}
}

func TestFetch_RefusesOtherSources(t *testing.T) {
	s, other := serve(t), serve(t)
	s.push(t, "charts/cni", "1.0.0", []byte("packed"), nil)
	s.push(t, "chartsandmore/cni", "1.0.0", []byte("packed"), nil)
	other.push(t, "charts/cni", "1.0.0", []byte("packed"), nil)
	s.push(t, "charts/image", "1.0.0", []byte("packed"), func(m *ocispec.Manifest) { m.Layers[0].MediaType = ocispec.MediaTypeImageLayerGzip })
	s.push(t, "charts/large", "1.0.0", bytes.Repeat([]byte("x"), maxPackage+1), nil)
	s.push(t, "charts/liar", "1.0.0", []byte("packed"), func(m *ocispec.Manifest) { m.Layers[0].Size = 3 })
	r := NewRegistries([]string{plain + s.host + "/charts"}, "", clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	cases := map[string]struct {
		source  helmchart.Source
		problem bool
		want    string
	}{
		"one of another registry":       {source: other.source("charts/cni", "1.0.0"), problem: true, want: "not among those"},
		"one whose path begins alike":   {source: s.source("chartsandmore/cni", "1.0.0"), problem: true, want: "not among those"},
		"one that climbs out":           {source: s.source("charts/../chartsandmore/cni", "1.0.0"), problem: true, want: "no repository"},
		"a version that is not there":   {source: s.source("charts/cni", "2.0.0"), want: "does not have it"},
		"an image":                      {source: s.source("charts/image", "1.0.0"), problem: true, want: "no Helm chart"},
		"one that is too large":         {source: s.source("charts/large", "1.0.0"), problem: true, want: "the limit is"},
		"one of another size than said": {source: s.source("charts/liar", "1.0.0"), want: "fetching chart"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			packed, err := r.Fetch(t.Context(), tc.source)
			var problem *helmchart.Problem
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &problem) != tc.problem {
				t.Errorf("fetched %d bytes, error = %v", len(packed), err)
			}
		})
	}
	if other.requests.Load() != 0 {
		t.Error("a registry was asked that nobody allowed")
	}
}

func TestParseAllowed(t *testing.T) {
	for entry, fits := range map[string]bool{
		"ghcr.io": true, "ghcr.io/acme/charts": true, "registry.example.com:5000/a": true, "http://127.0.0.1:5000": true,
		"": false, "/charts": false, "https://ghcr.io": false, "ghcr.io/A B": false, "ghcr.io/": false,
	} {
		if err := ParseAllowed([]string{entry}); (err == nil) != fits {
			t.Errorf("%q: error = %v", entry, err)
		}
	}
}
