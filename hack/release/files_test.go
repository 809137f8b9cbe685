// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// newPlugin creates a folder as `make plugin` writes it.
func newPlugin(t *testing.T) (folder, archive string) {
	t.Helper()
	folder = t.TempDir()
	archive = filepath.Join(folder, "kubectl-fleetgate-0.9.0-linux-amd64.tar.gz")
	content := []byte("what the archive holds")
	manifest := fmt.Sprintf("spec:\n  version: %s\n  platforms:\n  - uri: https://example.org/download/%s\n    sha256: %x\n", version, filepath.Base(archive), sha256.Sum256(content))
	for file, text := range map[string][]byte{archive: content, filepath.Join(folder, krewManifest): []byte(manifest)} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, archive
}

func TestRelease_SignsPluginArchives(t *testing.T) {
	s := newSetup(t)
	folder, archive := newPlugin(t)
	if err := s.release(t, "-plugin="+folder); err != nil {
		t.Fatal(err)
	}
	p, err := parse(s.arguments("-plugin=" + folder))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := p.keys.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{archive, filepath.Join(folder, krewManifest)} {
		if err := signer.verifier.verifyFile(t.Context(), file); err != nil {
			t.Error(err)
		}
		if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
			t.Fatal(err)
		}
		contains(t, signer.verifier.verifyFile(t.Context(), file), "does not verify")
	}
}

func TestRelease_RejectsArchiveThatDiffersFromManifest(t *testing.T) {
	s := newSetup(t)
	folder, archive := newPlugin(t)
	if err := os.WriteFile(archive, []byte("of an earlier build"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, s.release(t, "-plugin="+folder), "build both again with make plugin")
	if s.registry.written() != 0 {
		t.Error("something was pushed")
	}
}
