// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sealing closes a member's hub credential on the hub so that only the
// agent that requested it can open it.
//
// The agent makes a key pair and puts the public key into its
// ClusterRegistration; the gateway writes the sealed credential into that
// object's status. Others who can read the object, such as the bearer of the
// same registration token, cannot decrypt it.
//
// It is HPKE (RFC 9180, crypto/hpke) with ML-KEM-768 and X25519 together, HKDF
// with SHA-256 and AES-256-GCM. The info and the additional data are those of
// pkg/apis/registration: a sealed credential cannot be moved to another request.
// What travels is the encapsulated key, its length before it in four bytes, and
// the ciphertext. Base mode proves nothing about the sender: that is the
// hub's TLS certificate's part.
package sealing
