// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// signingInfo keeps the derived key apart from everything else that the private key is for.
const signingInfo = "fleetgate.io/registration-signing-key/v1"

// VerificationKey is the public Ed25519 key with which Verify checks what Sign signed.
func (k *Key) VerificationKey() ([]byte, error) {
	private, err := k.signing()
	if err != nil {
		return nil, err
	}
	return private.Public().(ed25519.PublicKey), nil
}

// Sign signs a message with a key that is derived from the private key: what seals cannot
// sign by itself, and an agent keeps only one secret.
func (k *Key) Sign(message []byte) ([]byte, error) {
	private, err := k.signing()
	if err != nil {
		return nil, err
	}
	return ed25519.Sign(private, message), nil
}

func (k *Key) signing() (ed25519.PrivateKey, error) {
	secret, err := k.Bytes()
	if err != nil {
		return nil, err
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, signingInfo, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("deriving a signing key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// Verify reports whether the holder of the private key signed the message. A key or a
// signature of another form is rejected.
func Verify(verificationKey, message, signature []byte) bool {
	return len(verificationKey) == ed25519.PublicKeySize && len(signature) == ed25519.SignatureSize &&
		ed25519.Verify(verificationKey, message, signature)
}
