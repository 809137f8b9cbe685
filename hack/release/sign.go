// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
)

// Types of in-toto statements and of their envelope.
const (
	intotoType  = "https://in-toto.io/Statement/v1"
	payloadType = "application/vnd.in-toto+json"
)

// timeout bounds one signature, including registry and log.
const timeout = 3 * time.Minute

// signer signs statements about digests and attaches them in the registry.
type signer struct {
	pair sign.Keypair
	// token and certificates are for keyless signing.
	token        string
	certificates sign.CertificateProvider
	services     *root.SigningConfig
	verifier     verifier
}

// vouch signs all statements about an artifact.
func (s *signer) vouch(ctx context.Context, one artifact) error {
	for _, what := range one.statements {
		if err := s.attach(ctx, one.digest, what); err != nil {
			return fmt.Errorf("signing the %s of %s: %w", what.name, one.digest, err)
		}
	}
	return nil
}

func (s *signer) attach(ctx context.Context, digest name.Digest, what statement) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	algorithm, hash, _ := strings.Cut(digest.DigestStr(), ":")
	payload, err := json.Marshal(map[string]any{
		"_type":         intotoType,
		"subject":       []any{map[string]any{"digest": map[string]string{algorithm: hash}}},
		"predicateType": what.predicateType,
		"predicate":     what.predicate,
	})
	if err != nil {
		return err
	}
	signed, err := bundle.SignData(ctx, &sign.DSSEData{Data: payload, PayloadType: payloadType}, s.pair, s.token, nil, nil,
		s.services, s.verifier.options.TrustedMaterial, bundle.SignOptions{CertificateProvider: s.certificates})
	if err != nil {
		return err
	}
	return ociremote.WriteAttestationNewBundleFormat(digest, signed, what.predicateType, ociremote.WithRemoteOptions(registry(ctx)...))
}
