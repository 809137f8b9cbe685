// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

const source = `package main

import "fmt"

var version = "none"

func main() { fmt.Println(version) }
`

// build compiles a small command in its own folder, with the Makefile's flags.
func build(t *testing.T, environment ...string) string {
	t.Helper()
	dir := t.TempDir()
	for file, content := range map[string]string{"main.go": source, "go.mod": "module example.org/command\n\ngo 1.26.0\n"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-C", dir, "-trimpath", "-ldflags", "-s -w -buildid= -X main.version=v1.2.3", "-o", "command", ".")
	command.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOWORK=off", "GOFLAGS="}, environment...)...)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return filepath.Join(dir, "command")
}

// makeImages runs the command and returns its folder and the digest of the index.
func makeImages(t *testing.T, args ...string) (string, v1.Hash) {
	t.Helper()
	out := t.TempDir()
	licence := filepath.Join(out, "LICENSE")
	if err := os.WriteFile(licence, []byte("as it is\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), append([]string{
		"-name=command", "-version=v1.2.3", "-licence=" + licence, "-out=" + out, "-repository=example.org/command", "-created=1700000000",
	}, args...)); err != nil {
		t.Fatal(err)
	}
	index := indexIn(t, out)
	if err := validate.Index(index); err != nil {
		t.Errorf("the layout is not valid: %v", err)
	}
	digest, err := index.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return out, digest
}

// indexIn is the only image of the layout, which has the version as its name.
func indexIn(t *testing.T, out string) v1.ImageIndex {
	t.Helper()
	root, err := layout.ImageIndexFromPath(filepath.Join(out, "command"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "v1.2.3" {
		t.Fatalf("the layout has %+v, want one image with its version as name", manifest.Manifests)
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func imageIn(t *testing.T, out string) v1.Image {
	t.Helper()
	index := indexIn(t, out)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if kind := manifest.Manifests[0].ArtifactType; kind != "" {
		t.Errorf("the index says that the image is a %s, which old tools drop", kind)
	}
	one, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

func TestRun_IsReproducible(t *testing.T) {
	first, second := build(t), build(t)
	_, one := makeImages(t, "-binary=linux/amd64="+first)
	_, other := makeImages(t, "-binary=linux/amd64="+second)
	if one != other {
		t.Errorf("built twice, in two folders: %s and %s", one, other)
	}
}

func TestRun_ImageContents(t *testing.T) {
	out, _ := makeImages(t, "-binary=linux/amd64="+build(t))
	one := imageIn(t, out)
	config, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/command"}) || config.Architecture != "amd64" {
		t.Errorf("config is %+v", config)
	}
	layers, err := one.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers, %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = content.Close() }()
	var files []string
	for reader := tar.NewReader(content); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.Mode&0o022 != 0 || header.ModTime.Unix() != 1700000000 {
			t.Errorf("%s is of %d, mode %o, of %s: want root's, not writable by others, of the given time", header.Name, header.Uid, header.Mode, header.ModTime)
		}
		if header.Typeflag == tar.TypeReg {
			files = append(files, header.Name)
		}
	}
	want := []string{"etc/passwd", "etc/ssl/certs/ca-certificates.crt", "command", "usr/share/doc/fleetgate/LICENSE", "usr/share/doc/fleetgate/command.spdx.json"}
	if !slices.Equal(files, want) {
		t.Errorf("files are %q, want %q", files, want)
	}
}

func TestSBOM_NamesEveryModule(t *testing.T) {
	// The test's own binary has dependencies. It may be linked dynamically, which does not matter
	// here.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	text, err := describe(content{name: "command", version: "v1.2.3"}, binary)
	if err != nil {
		t.Fatal(err)
	}
	var document spdxDocument
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	if document.Version != "SPDX-2.3" || document.Packages[0].Version != "v1.2.3" || len(document.Packages) != len(document.Relationships) {
		t.Errorf("document is %+v", document)
	}
	for _, module := range []string{"stdlib", "github.com/google/go-containerregistry", "golang.org/x/crypto/x509roots/fallback"} {
		if !slices.ContainsFunc(document.Packages, func(p spdxPackage) bool { return p.Name == module && p.Version != "" }) {
			t.Errorf("the SBOM does not name %s with a version", module)
		}
	}
}

func TestRun_RejectsDynamicBinaries(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/bin/sh": "CGO_ENABLED=0", text: "reading the binary", self + "-none": "no such file"} {
		if _, err := assemble(content{name: "command", path: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want one that says %q", path, err, want)
		}
	}
}

func TestRun_PushesPlatformsAsOneIndex(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/fleetgate/command"
	_, digest := makeImages(t, "-push="+repository, "-binary=linux/amd64="+build(t), "-binary=linux/arm64="+build(t, "GOARCH=arm64"))
	reference, err := name.NewTag(repository + ":v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := index.Digest(); err != nil || got != digest || len(manifest.Manifests) != 2 {
		t.Errorf("the registry has %s with %d images (%v), want %s with 2", got, len(manifest.Manifests), err, digest)
	}
}
