// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// packed packs two platforms into a folder.
func packed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"linux-amd64/kubectl-fleetgate": "for linux", "windows-amd64/kubectl-fleetgate.exe": "for windows", "LICENSE": "the license"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	o := options{version: "1.2.3", binaries: dir, license: filepath.Join(dir, "LICENSE"), url: "https://example.com/v1.2.3/", out: filepath.Join(dir, "out")}
	if err := o.run([]string{"linux/amd64", "windows/amd64"}); err != nil {
		t.Fatal(err)
	}
	return o.out
}

func TestRun_WritesValidManifest(t *testing.T) {
	dir := packed(t)
	text, err := os.ReadFile(filepath.Join(dir, "fleetgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata["name"] != "fleetgate" || m.Spec.Version != "v1.2.3" ||
		m.Spec.ShortDescription == "" || strings.Contains(m.Spec.ShortDescription, "\n") || len(m.Spec.Platforms) != 2 {
		t.Errorf("the manifest is\n%s", text)
	}
	for _, p := range m.Spec.Platforms {
		archive, err := os.ReadFile(filepath.Join(dir, filepath.Base(p.URI)))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(archive)
		if p.SHA256 != hex.EncodeToString(sum[:]) || !regexp.MustCompile(`^https://example\.com/v1\.2\.3/[^/]+\.(tar\.gz|zip)$`).MatchString(p.URI) {
			t.Errorf("platform %+v", p)
		}
		if exe := strings.HasSuffix(p.Bin, ".exe"); exe != (p.Selector.MatchLabels["os"] == "windows") {
			t.Errorf("platform %+v", p)
		}
	}
}

func TestRun_WritesReproducibleArchives(t *testing.T) {
	dir, again := packed(t), packed(t)
	const linux, windows = "kubectl-fleetgate-1.2.3-linux-amd64.tar.gz", "kubectl-fleetgate-1.2.3-windows-amd64.zip"
	for _, name := range []string{linux, windows} {
		one, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if two, err := os.ReadFile(filepath.Join(again, name)); err != nil || string(one) != string(two) {
			t.Errorf("%s is another one the second time: %v", name, err)
		}
	}
	file, err := os.Open(filepath.Join(dir, linux))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	archive, names := tar.NewReader(unzipped), []string{}
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		if header.Name == "kubectl-fleetgate" && header.Mode != 0o755 {
			t.Errorf("the program has mode %o", header.Mode)
		}
	}
	reader, err := zip.OpenReader(filepath.Join(dir, windows))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	if strings.Join(names, " ") != "kubectl-fleetgate LICENSE" || len(reader.File) != 2 || reader.File[0].Name != "kubectl-fleetgate.exe" {
		t.Errorf("got %v and %v", names, reader.File)
	}
}
