// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	cosignbundle "github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
)

// checksums has the SHA-256 sums of all files of a release, as hack/bundle writes it.
const checksums = "SHA256SUMS"

// bundleSuffix is the suffix of a file's bundle for `cosign verify-blob --bundle`.
const bundleSuffix = ".sigstore.json"

// checkSums verifies that the folder has the files that its checksums name, with this content.
func (p *plan) checkSums() error {
	text, err := os.ReadFile(filepath.Join(p.out, checksums))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		want, file, found := strings.Cut(strings.TrimSpace(line), "  ")
		if !found || file != filepath.Base(file) {
			return fmt.Errorf("%s has the line %q, which names no file of the folder", checksums, line)
		}
		content, err := os.ReadFile(filepath.Join(p.out, file))
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			return fmt.Errorf("%s is not the file that %s names: write the folder again", file, checksums)
		}
	}
	return nil
}

// signFile writes the signature bundle of a file beside it.
func (s *signer) signFile(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	signed, err := cosignbundle.SignData(ctx, &sign.PlainData{Data: content}, s.pair, s.token, nil, nil,
		s.services, s.verifier.options.TrustedMaterial, cosignbundle.SignOptions{CertificateProvider: s.certificates})
	if err != nil {
		return fmt.Errorf("signing %s: %w", file, err)
	}
	return os.WriteFile(file+bundleSuffix, signed, 0o644)
}

// verifyFile verifies that the trusted signer has signed a file.
func (v verifier) verifyFile(ctx context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	signature, err := bundle.LoadJSONFromPath(file + bundleSuffix)
	if err != nil {
		return fmt.Errorf("reading the signature of %s: %w", file, err)
	}
	if _, err := cosign.VerifyNewBundle(ctx, &v.options, verify.WithArtifact(bytes.NewReader(content)), signature); err != nil {
		return fmt.Errorf("the signature of %s does not verify: %w", file, err)
	}
	return nil
}
