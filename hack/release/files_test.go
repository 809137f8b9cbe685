// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRelease_SignsChecksums(t *testing.T) {
	s := newSetup(t)
	if err := s.release(t); err != nil {
		t.Fatal(err)
	}
	p, _ := s.planned(t)
	signer, err := p.keys.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.out, checksums)
	if err := signer.verifier.verifyFile(t.Context(), file); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, signer.verifier.verifyFile(t.Context(), file), "does not verify")
}

func TestRelease_RejectsFileThatDiffersFromChecksums(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"another file":        {"agent-crds.yaml", "of an earlier build", "write the folder again"},
		"a path":              {checksums, "00  ../images/gateway", "names no file of the folder"},
		"no checksum":         {checksums, "gateway-crds.yaml", "names no file of the folder"},
		"a file that is gone": {checksums, "00  gone", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			if err := os.WriteFile(filepath.Join(s.out, test.file), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			contains(t, s.release(t), test.want)
			if s.registry.written() != 0 {
				t.Error("something was pushed")
			}
		})
	}
}
