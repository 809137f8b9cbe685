// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/cosign/v3/pkg/cosign/bundle"
	"github.com/sigstore/cosign/v3/pkg/providers"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	prototrustroot "github.com/sigstore/protobuf-specs/gen/pb-go/trustroot/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/sigstore/sigstore/pkg/signature/options"

	// Sources of tokens for keyless signing: a variable, or the runner of a workflow.
	_ "github.com/sigstore/cosign/v3/pkg/providers/envvar"
	_ "github.com/sigstore/cosign/v3/pkg/providers/github"
)

// passwordVariable has the password of a key. It is no flag, because other processes can read
// flags.
const passwordVariable = "COSIGN_PASSWORD"

// keys configure the signer.
type keys struct {
	// file is a private key. If empty, signing is keyless.
	file string
	// logged records signatures of a key in the log.
	logged bool
	// identity and issuer are required of the certificate when keyless.
	identity, issuer string
	// services and roots are Sigstore configuration files. If empty, its public instances apply.
	services, roots string
}

// open returns the signer with its verifier.
func (k keys) open(ctx context.Context) (*signer, error) {
	if k.file == "" {
		return k.openKeyless(ctx)
	}
	private, err := readKey(k.file)
	if err != nil {
		return nil, err
	}
	pair, err := newPair(private)
	if err != nil {
		return nil, fmt.Errorf("using the key %s: %w", k.file, err)
	}
	s := &signer{pair: pair, verifier: verifier{cosign.CheckOpts{NewBundleFormat: true, SigVerifier: private, IgnoreTlog: !k.logged}}}
	if k.logged {
		return s, k.readServices(s)
	}
	s.services, err = root.NewSigningConfig(root.SigningConfigMediaType02, nil, nil, nil, noService, nil, noService)
	return s, err
}

var noService = root.ServiceConfiguration{Selector: prototrustroot.ServiceSelector_ALL}

// openKeyless creates a key for this run, and requests the certificate for the first signature.
func (k keys) openKeyless(ctx context.Context) (*signer, error) {
	if k.identity == "" || k.issuer == "" {
		return nil, errors.New("say who signs: with -key, or keyless with -identity and -issuer, which the certificate has to be for")
	}
	if !providers.Enabled(ctx) {
		return nil, errors.New("keyless signing needs an OIDC token for the audience sigstore in SIGSTORE_ID_TOKEN, or a workflow on GitHub with the permission id-token: write")
	}
	token, err := providers.Provide(ctx, "sigstore")
	if err != nil {
		return nil, fmt.Errorf("asking for an OIDC token: %w", err)
	}
	s := &signer{token: token, verifier: verifier{cosign.CheckOpts{
		NewBundleFormat: true, Identities: []cosign.Identity{{Issuer: k.issuer, Subject: k.identity}},
	}}}
	if err := k.readServices(s); err != nil {
		return nil, err
	}
	if s.pair, err = sign.NewEphemeralKeypair(nil); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	if s.certificates, err = bundle.NewCachingFulcioProvider(s.services); err != nil {
		return nil, fmt.Errorf("looking for who issues certificates: %w", err)
	}
	return s, nil
}

// readServices returns the services for signing and logging, and their trusted keys.
func (k keys) readServices(s *signer) (err error) {
	if k.services == "" {
		s.services, err = cosign.SigningConfig()
	} else {
		s.services, err = root.NewSigningConfigFromPath(k.services)
	}
	if err != nil {
		return fmt.Errorf("reading which services sign: %w", err)
	}
	if k.roots == "" {
		s.verifier.options.TrustedMaterial, err = cosign.TrustedRoot()
	} else {
		s.verifier.options.TrustedMaterial, err = root.NewTrustedRootFromPath(k.roots)
	}
	if err != nil {
		return fmt.Errorf("reading whom of these services to trust: %w", err)
	}
	return nil
}

// readKey opens a cosign private key.
func readKey(file string) (signature.SignerVerifier, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key: %w", err)
	}
	password, ok := os.LookupEnv(passwordVariable)
	if !ok {
		return nil, fmt.Errorf("put the password of the key %s into %s, empty if it has none", file, passwordVariable)
	}
	private, err := cosign.LoadPrivateKey(text, []byte(password), nil)
	if err != nil {
		return nil, fmt.Errorf("opening the key %s with the password in %s: %w", file, passwordVariable, err)
	}
	return private, nil
}

// pair implements the library's interface of a keypair for a stored key.
type pair struct {
	key       signature.SignerVerifier
	public    crypto.PublicKey
	hint      []byte
	algorithm signature.AlgorithmDetails
}

func newPair(key signature.SignerVerifier) (*pair, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	algorithm, err := signature.GetDefaultAlgorithmDetails(public, *cosign.GetDefaultLoadOptions(nil)...)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(encoded)
	return &pair{key: key, public: public, hint: []byte(base64.StdEncoding.EncodeToString(sum[:])), algorithm: algorithm}, nil
}

func (p *pair) GetHashAlgorithm() protocommon.HashAlgorithm { return p.algorithm.GetProtoHashType() }

func (p *pair) GetSigningAlgorithm() protocommon.PublicKeyDetails {
	return p.algorithm.GetSignatureAlgorithm()
}

// GetHint returns the hash of the public key, by which cosign finds the key.
func (p *pair) GetHint() []byte { return p.hint }

// GetKeyAlgorithm is used for certificate requests, which a stored key never makes.
func (p *pair) GetKeyAlgorithm() string { return "" }

func (p *pair) GetPublicKey() crypto.PublicKey { return p.public }

func (p *pair) GetPublicKeyPem() (string, error) {
	text, err := cryptoutils.MarshalPublicKeyToPEM(p.public)
	return string(text), err
}

// SignData returns the signature and the signed hash.
func (p *pair) SignData(ctx context.Context, data []byte) (signed, hashed []byte, err error) {
	hasher := p.algorithm.GetHashType().New()
	// Writes to a hash do not fail.
	_, _ = hasher.Write(data)
	hashed = hasher.Sum(nil)
	signed, err = p.key.SignMessage(nil, options.WithContext(ctx), options.WithDigest(hashed), options.WithCryptoSignerOpts(p.algorithm.GetHashType()))
	return signed, hashed, err
}
