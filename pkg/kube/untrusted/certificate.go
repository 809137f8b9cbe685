// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const (
	// longestRSA is in bits: the limit of crypto/tls for the keys of its peers. It does not check
	// trusted certificates, and computes for more than a minute with a key that fits into a Secret.
	longestRSA = 8192
	// longestKey is in bytes of PEM: an RSA key of longestRSA has half as many. Parsing a private
	// key also checks it, which takes a minute for one of 300 KB.
	longestKey = 16 << 10
)

// Certificates parses PEM certificates that are used to verify others. Other blocks are ignored. It
// fails if there is no certificate, or one has an RSA key of more than 8192 bits.
func Certificates(text []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			continue
		}
		if key, is := certificate.PublicKey.(*rsa.PublicKey); is && key.N.BitLen() > longestRSA {
			return nil, fmt.Errorf("a certificate: %w", &LimitError{What: "bits in its RSA key", Most: longestRSA})
		}
		pool.AddCert(certificate)
		found = true
	}
	if !found {
		return nil, errors.New("it has no certificate in PEM form")
	}
	return pool, nil
}

// CheckKeyPair returns an error unless the arguments are a certificate in PEM with its private key.
// The error never quotes the key.
func CheckKeyPair(certificate, key []byte) error {
	if len(key) > longestKey {
		return fmt.Errorf("the key: %w", &LimitError{What: "bytes", Most: longestKey})
	}
	if _, err := tls.X509KeyPair(certificate, key); err != nil {
		return errors.New("it is no certificate and its key in PEM form")
	}
	return nil
}
