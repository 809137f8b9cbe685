// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPin_WritesDigests(t *testing.T) {
	digests := map[string]string{"agent": "sha256:" + strings.Repeat("a", 64)}
	for name, test := range map[string]struct{ values, want, problem string }{
		"repository and digest of an image of ours": {
			values: "image:\n  repository: ghcr.io/fleetgate/agent\n  tag: \"\"\n  digest: \"\"\nother: 1\n",
			want:   "image:\n  repository: registry.example.org/fleetgate/agent\n  tag: \"\"\n  digest: " + digests["agent"] + "\nother: 1\n",
		},
		"no image of ours":          {values: "image:\n  repository: ghcr.io/other/nginx\n", problem: "no image of ours"},
		"the digest of another one": {values: "image:\n  repository: ghcr.io/fleetgate/agent\nother:\n  digest: \"\"\n", problem: "no empty digest"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := pin([]byte(test.values), "registry.example.org/fleetgate", digests)
			contains(t, err, test.problem)
			if string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestAddPlugin_RejectsArchiveThatDiffersFromManifest(t *testing.T) {
	const archive = "kubectl-fleetgate-0.9.0-linux-amd64.tar.gz"
	for name, test := range map[string]struct{ content, problem string }{
		"the archive":              {"built", ""},
		"that of an earlier build": {"built before", "build both again with make plugin"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &plan{plugin: t.TempDir(), out: t.TempDir()}
			write(t, filepath.Join(p.plugin, archive), "built")
			sum, err := sumOf(filepath.Join(p.plugin, archive))
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(p.plugin, krewManifest), fmt.Sprintf("spec:\n  platforms:\n  - uri: https://example.org/download/%s\n    sha256: %s\n", archive, sum))
			write(t, filepath.Join(p.plugin, archive), test.content)
			contains(t, p.addPlugin(), test.problem)
			if _, err := os.Stat(p.path(archive)); (err == nil) != (test.problem == "") {
				t.Errorf("the archive in the folder: %v", err)
			}
		})
	}
}

// contains fails unless the error contains a text, or is nil for an empty one.
func contains(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want an error that says %q", err, want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
