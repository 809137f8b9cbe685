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
	"path"
	"path/filepath"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	cosignbundle "github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"sigs.k8s.io/yaml"
)

// krewManifest is the Krew manifest of the kubectl plugin.
const krewManifest = "fleetgate.yaml"

// bundleSuffix is the suffix of a file's bundle for `cosign verify-blob --bundle`.
const bundleSuffix = ".sigstore.json"

// pluginFiles are the archives that Krew's manifest names, and the manifest, as `make plugin`
// writes them. An archive that differs from the manifest is an error.
func (p *plan) pluginFiles() ([]string, error) {
	if p.plugin == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(p.plugin, krewManifest))
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Spec struct {
			Version   string `json:"version"`
			Platforms []struct{ URI, SHA256 string }
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		return nil, fmt.Errorf("reading %s: %w", krewManifest, err)
	}
	var files []string
	for _, platform := range manifest.Spec.Platforms {
		file := filepath.Join(p.plugin, path.Base(platform.URI))
		archive, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(archive); hex.EncodeToString(sum[:]) != platform.SHA256 {
			return nil, fmt.Errorf("%s is not the archive that %s names: build both again with make plugin", file, krewManifest)
		}
		files = append(files, file)
	}
	return append(files, filepath.Join(p.plugin, krewManifest)), nil
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
