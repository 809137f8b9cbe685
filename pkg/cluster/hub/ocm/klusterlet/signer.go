// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"

	"k8s.io/utils/clock"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// longestLife is the validity of a certificate unless its agent asks for less.
	longestLife = 365 * 24 * time.Hour
	// shortestLife is the minimum that the API allows.
	shortestLife = 10 * time.Minute
	// backdated tolerates an API server whose clock is ten minutes behind.
	backdated = 15 * time.Minute
)

// Signer signs certificates of klusterlets on hubs whose API server has no other signer. It uses a
// CA that the API server accepts for client certificates (--client-ca-file).
type Signer struct {
	authority *x509.Certificate
	key       crypto.Signer
	clock     clock.PassiveClock
}

// NewSigner reads a CA's certificate and key in PEM. It fails if they are not a CA's, or do not
// match.
func NewSigner(certificate, key []byte, clock clock.PassiveClock) (*Signer, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("reading the authority that is to sign: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA || pair.Leaf.KeyUsage != 0 && pair.Leaf.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, errors.New("the certificate that is to sign is not an authority's: for klusterlets, give that of the API server's --client-ca-file")
	}
	return &Signer{authority: pair.Leaf, key: signer, clock: clock}, nil
}

// Sign returns a client certificate, in PEM, for a request that Read has accepted. It is valid for
// the requested seconds, at most a year, or a day for the agent of a member, and not longer than
// the CA.
func (s *Signer) Sign(request []byte, seconds *int32) ([]byte, error) {
	template, no := parse(request)
	if no != nil {
		return nil, no
	}
	life := longestLife
	if seconds != nil {
		life = min(life, max(shortestLife, time.Duration(*seconds)*time.Second))
	}
	if strings.HasSuffix(template.Subject.CommonName, ":"+clusterv1.AgentName) {
		life = min(life, clusterv1.AgentCertificateLife)
	}
	now := s.clock.Now()
	ends := now.Add(life)
	if s.authority.NotAfter.Before(ends) {
		ends = s.authority.NotAfter
	}
	if !ends.After(now) {
		return nil, refusal.New(ReasonAuthorityExpired, "the authority that is to sign has expired at %s: replace it", s.authority.NotAfter)
	}
	const serialBits = 127
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: template.Subject, NotBefore: now.Add(-backdated), NotAfter: ends,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true,
	}, s.authority, template.PublicKey, s.key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
