// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/sigstore/cosign/v3/pkg/cosign"
)

const (
	version  = "v0.9.0"
	password = "a password of the test"
	// helm is the program that `make test-release` has built.
	helm = "../../.fleetgate/bin/helm"
)

// fakeRegistry is a registry that counts writes. Tests can change its responses.
type fakeRegistry struct {
	*httptest.Server
	mu      sync.Mutex
	options []ggcr.Option
	content http.Handler
	writes  int
	// manifests are all written manifests, in order.
	manifests []manifest
	// changed are response bodies by the end of the path.
	changed map[string][]byte
}

// manifest is a manifest written to a registry.
type manifest struct {
	path   string
	header http.Header
	body   []byte
}

// newRegistry runs a registry. One without the referrers API keeps referrers below a tag.
func newRegistry(t *testing.T, options ...ggcr.Option) *fakeRegistry {
	t.Helper()
	r := &fakeRegistry{options: append(options, ggcr.Logger(log.New(io.Discard, "", 0)), ggcr.WithBlobHandler(ggcr.NewInMemoryBlobHandler()))}
	r.empty()
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

// empty deletes everything but blobs, which are addressed by digest.
func (r *fakeRegistry) empty() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.content, r.manifests, r.changed = ggcr.New(r.options...), nil, map[string][]byte{}
}

// saved is the state for restore.
func (r *fakeRegistry) saved() []manifest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.manifests)
}

// restore resets the registry to a saved state.
func (r *fakeRegistry) restore(saved []manifest) {
	r.empty()
	for _, one := range saved {
		request := httptest.NewRequest(http.MethodPut, one.path, bytes.NewReader(one.body))
		request.Header = one.header
		r.ServeHTTP(httptest.NewRecorder(), request)
	}
}

func (r *fakeRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var body []byte
	if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/manifests/") {
		// The registry itself rejects a malformed manifest.
		body, _ = io.ReadAll(request.Body)
		request.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.mu.Lock()
	if body != nil {
		r.manifests = append(r.manifests, manifest{request.URL.Path, request.Header, body})
	}
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		r.writes++
	}
	content := r.content
	for path, body := range r.changed {
		if strings.HasSuffix(request.URL.Path, path) {
			content = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body) })
		}
	}
	r.mu.Unlock()
	content.ServeHTTP(w, request)
}

// written returns the number of writes.
func (r *fakeRegistry) written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writes
}

// change changes the response body for paths with this end.
func (r *fakeRegistry) change(path string, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed[path] = body
}

// repository is the repository of the images.
func (r *fakeRegistry) repository() string {
	return strings.TrimPrefix(r.URL, "http://") + "/fleetgate"
}

// newKey creates a cosign key pair and returns the files.
func newKey(t *testing.T) (private, public string) {
	t.Helper()
	keys, err := cosign.GenerateKeyPair(func(bool) ([]byte, error) { return []byte(password), nil })
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	private, public = filepath.Join(folder, "cosign.key"), filepath.Join(folder, "cosign.pub")
	if err := errors.Join(os.WriteFile(private, keys.PrivateBytes, 0o600), os.WriteFile(public, keys.PublicBytes, 0o600)); err != nil {
		t.Fatal(err)
	}
	return private, public
}

// buildImages writes images of both commands as `make images` does.
func buildImages(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, command := range commands {
		index := v1.ImageIndex(empty.Index)
		for _, architecture := range []string{"amd64", "arm64"} {
			one := newImage(t, architecture)
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
			})
			writeSBOM(t, folder, command, architecture, "1.26.0")
		}
		path, err := layout.Write(filepath.Join(folder, command), empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		if err := path.AppendIndex(index); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func newImage(t *testing.T, architecture string) v1.Image {
	t.Helper()
	one, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	config, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	if one, err = mutate.ConfigFile(one, config); err != nil {
		t.Fatal(err)
	}
	return one
}

func writeSBOM(t *testing.T, folder, command, architecture, compiler string) {
	t.Helper()
	text := fmt.Sprintf(`{"spdxVersion": "SPDX-2.3", "name": "%s-%s", "packages": [{"name": "stdlib", "versionInfo": "%s"}]}`, command, architecture, compiler)
	if err := os.WriteFile(filepath.Join(folder, command+"-"+architecture+".spdx.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// git runs git in a folder.
func git(t *testing.T, folder string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", append([]string{"-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.org"}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newTree creates a checkout of a commit with the version's tag.
func newTree(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	git(t, folder, "init", "--quiet")
	git(t, folder, "commit", "--quiet", "--allow-empty", "--message=first")
	git(t, folder, "tag", version)
	return folder
}

// setup are the inputs of a release.
type setup struct {
	registry                           *fakeRegistry
	tree, images, out, private, public string
}

func newSetup(t *testing.T, options ...ggcr.Option) *setup {
	t.Helper()
	t.Setenv(passwordVariable, password)
	s := &setup{registry: newRegistry(t, options...), tree: newTree(t), images: buildImages(t), out: t.TempDir()}
	s.private, s.public = newKey(t)
	s.bundle(t, 1700000000)
	return s
}

// bundle makes the folder of the release.
func (s *setup) bundle(t *testing.T, created int64) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "./hack/bundle", "-version="+version, "-repository="+s.registry.repository(), "-images="+s.images,
		"-charts=charts", "-helm=hack/release/"+helm, "-out="+s.out, fmt.Sprint("-created=", created))
	command.Dir = "../.."
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("making the folder: %v: %s", err, out)
	}
}

func (s *setup) arguments(more ...string) []string {
	return append([]string{
		"-push=" + s.registry.repository(), "-version=" + version, "-tree=" + s.tree, "-images=" + s.images, "-helm=" + helm,
		"-out=" + s.out, "-source=https://example.org/fleetgate", "-created=1700000000", "-key=" + s.private,
	}, more...)
}

func (s *setup) release(t *testing.T, more ...string) error {
	t.Helper()
	return run(t.Context(), s.arguments(more...))
}

// planned returns the plan of a release.
func (s *setup) planned(t *testing.T) (*plan, []image) {
	t.Helper()
	p, err := parse(s.arguments())
	if err != nil {
		t.Fatal(err)
	}
	images, err := p.builtImages()
	if err != nil {
		t.Fatal(err)
	}
	return p, images
}

// digests returns the list of a release; empty if there is none.
func (s *setup) digests(t *testing.T) []name.Digest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.out, "digests.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var digests []name.Digest
	for _, line := range strings.Fields(string(text)) {
		digest, err := name.NewDigest(line)
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	return digests
}

// contains fails unless the error contains a text.
func contains(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error that says %q", err, want)
	}
}
