// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing

import (
	"bytes"
	"crypto/hpke"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// maxSealedLength bounds what is opened, in bytes.
const maxSealedLength = 48 * 1024

// ErrPublicKey is returned for a public key that cannot be used for sealing.
var ErrPublicKey = errors.New("not a public key of this kind")

// ErrSealed is returned when a sealed credential does not open: it was made for
// another key or another request, or was changed in transit.
var ErrSealed = errors.New("sealed credential does not open")

// Credential is what a member gets when its registration is granted.
type Credential struct {
	// Member is the name of the MemberCluster.
	Member string `json:"member"`
	// Token is the hub's bearer token of the member's account.
	Token string `json:"token"`
	// Expires is when the token expires unless it is renewed.
	Expires time.Time `json:"expires"`
}

// Key is an agent's key pair.
type Key struct {
	private hpke.PrivateKey
}

func kem() hpke.KEM { return hpke.MLKEM768X25519() }

// NewKey makes a key pair.
func NewKey() (*Key, error) {
	private, err := kem().GenerateKey()
	if err != nil {
		return nil, fmt.Errorf("generating a key pair: %w", err)
	}
	return &Key{private: private}, nil
}

// ParseKey reads what Bytes wrote.
func ParseKey(b []byte) (*Key, error) {
	private, err := kem().NewPrivateKey(b)
	if err != nil {
		return nil, fmt.Errorf("reading a private key: %w", err)
	}
	return &Key{private: private}, nil
}

// Bytes is the private key, to be kept secret.
func (k *Key) Bytes() ([]byte, error) {
	b, err := k.private.Bytes()
	if err != nil {
		return nil, fmt.Errorf("writing a private key: %w", err)
	}
	return b, nil
}

// PublicKey is the value of a ClusterRegistration's spec.publicKey.
func (k *Key) PublicKey() []byte { return k.private.PublicKey().Bytes() }

// Open reads a credential that Seal closed for this key and this request, or
// returns ErrSealed.
func (k *Key) Open(sealed []byte, request types.UID, clientID string) (*Credential, error) {
	if len(sealed) > maxSealedLength {
		return nil, fmt.Errorf("%w: longer than %d bytes", ErrSealed, maxSealedLength)
	}
	enc, ciphertext, err := split(sealed)
	if err != nil {
		return nil, err
	}
	recipient, err := hpke.NewRecipient(enc, k.private, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(registrationv1alpha1.SealedTokenInfo))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	plain, err := recipient.Open(registrationv1alpha1.SealedTokenAAD(request, clientID), ciphertext)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSealed, err)
	}
	var credential Credential
	if err := json.Unmarshal(plain, &credential); err != nil {
		return nil, fmt.Errorf("%w: its content is not a credential", ErrSealed)
	}
	return &credential, nil
}

// CheckPublicKey returns ErrPublicKey unless Seal works for the key.
func CheckPublicKey(publicKey []byte) error {
	_, err := parsePublicKey(publicKey)
	return err
}

// Seal closes the credential for the holder of the private key. It returns
// ErrPublicKey for a public key that is none.
func Seal(credential Credential, publicKey []byte, request types.UID, clientID string) ([]byte, error) {
	public, err := parsePublicKey(publicKey)
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(credential)
	if err != nil {
		return nil, fmt.Errorf("encoding a credential: %w", err)
	}
	enc, sender, err := hpke.NewSender(public, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(registrationv1alpha1.SealedTokenInfo))
	if err != nil {
		return nil, fmt.Errorf("sealing a credential: %w", err)
	}
	ciphertext, err := sender.Seal(registrationv1alpha1.SealedTokenAAD(request, clientID), plain)
	if err != nil {
		return nil, fmt.Errorf("sealing a credential: %w", err)
	}
	return join(enc, ciphertext), nil
}

// Fingerprint is the lower-case hex SHA-256 of a public key, by which hub and
// people tell keys apart.
func Fingerprint(publicKey []byte) string {
	sum := sha256.Sum256(publicKey)
	return hex.EncodeToString(sum[:])
}

func parsePublicKey(raw []byte) (hpke.PublicKey, error) {
	public, err := kem().NewPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPublicKey, err)
	}
	return public, nil
}

// join puts the length of the first part before it, so that split finds the border.
func join(first, second []byte) []byte {
	var b bytes.Buffer
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(first)))
	b.Write(length[:])
	b.Write(first)
	b.Write(second)
	return b.Bytes()
}

func split(b []byte) (first, second []byte, err error) {
	if len(b) < 4 {
		return nil, nil, fmt.Errorf("%w: too short", ErrSealed)
	}
	length, rest := binary.BigEndian.Uint32(b), b[4:]
	if uint64(length) > uint64(len(rest)) {
		return nil, nil, fmt.Errorf("%w: too short", ErrSealed)
	}
	return rest[:length], rest[length:], nil
}
