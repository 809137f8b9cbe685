// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package bomb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// keyBits make an RSA key with which one signature takes more than a minute, and checking
// that the key is one as long, and which still fits into a Secret.
const keyBits = 500_000

// Authority is a certificate, in PEM, with an RSA key that takes a minute to verify with.
func Authority(t testing.TB) []byte {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bomb"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: large(keyBits), E: 1<<31 - 1}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Key is a private RSA key, in PEM, that takes a minute to find out that it is none.
func Key(t testing.TB) []byte {
	t.Helper()
	p, q := large(keyBits/2), large(keyBits/2-1)
	n := new(big.Int).Mul(p, q)
	// As in RFC 8017, appendix A.1.2.
	der, err := asn1.Marshal(struct {
		Version                                    int
		N                                          *big.Int
		E                                          int
		D, P, Q, ExponentP, ExponentQ, Coefficient *big.Int
	}{0, n, 65537, new(big.Int).Sub(n, big.NewInt(2)), p, q, p, q, p})
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der})
}

// large is an odd number of so many bits.
func large(bits uint) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	return n.Sub(n, big.NewInt(1))
}
