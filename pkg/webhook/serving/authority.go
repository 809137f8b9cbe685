// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	authorityLifetime = 365 * 24 * time.Hour
	leafLifetime      = 7 * 24 * time.Hour
	// settle is the minimum age of the next CA before it signs: by then it is in every bundle. If
	// there is no other CA, it may be younger.
	settle = 10 * time.Minute
	// clockSkew is how far back the validity of certificates begins. An API server of the hub, or
	// an agent, whose clock is ten minutes behind accepts them at once.
	clockSkew = 15 * time.Minute
)

// Keys of the Secret. The first three are those of any TLS Secret: the current CA, and all CAs that
// verify.
const (
	keyCurrentCert = corev1.TLSCertKey
	keyCurrentKey  = corev1.TLSPrivateKeyKey
	keyBundle      = "ca.crt"
	keyNextCert    = "next.crt"
	keyNextKey     = "next.key"
	keyPrevious    = "previous.crt"
)

// ca is one certificate authority.
type ca struct {
	cert, key []byte
	parsed    *x509.Certificate
	pair      tls.Certificate
}

// authority is the current CA, the next one, and the previous one. All three are in the bundle, so
// a rotation changes the signer but not the trust, and clients need not be informed in time.
type authority struct {
	current, next *ca
	previous      []byte
}

// readAuthority reads the usable parts of a Secret's data; other parts count as missing.
func readAuthority(data map[string][]byte) authority {
	return authority{
		current:  readCA(data[keyCurrentCert], data[keyCurrentKey]),
		next:     readCA(data[keyNextCert], data[keyNextKey]),
		previous: data[keyPrevious],
	}
}

// readCA returns nil unless the data is a CA with its key.
func readCA(cert, key []byte) *ca {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil
	}
	parsed, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil || !parsed.IsCA {
		return nil
	}
	return &ca{cert: cert, key: key, parsed: parsed, pair: pair}
}

// data is the inverse of readAuthority.
func (a authority) data() map[string][]byte {
	return map[string][]byte{
		keyCurrentCert: a.current.cert, keyCurrentKey: a.current.key,
		keyNextCert: a.next.cert, keyNextKey: a.next.key,
		keyPrevious: a.previous, keyBundle: a.bundle(),
	}
}

// bundle is everything that verifies, the newest first.
func (a authority) bundle() []byte { return slices.Concat(a.next.cert, a.current.cert, a.previous) }

// advanced returns the authority after any due rotation, and whether it has changed. The next CA
// takes over when the current one has a third of its life left, or is missing: to rotate by hand,
// empty its key.
func (a authority) advanced(now time.Time) (authority, bool, error) {
	changed := false
	if a.next != nil && a.retires(now) {
		if a.current != nil {
			a.previous = a.current.cert
		}
		a.current, a.next, changed = a.next, nil, true
	}
	for _, missing := range []**ca{&a.current, &a.next} {
		if *missing != nil {
			continue
		}
		made, err := newCA(now)
		if err != nil {
			return authority{}, false, err
		}
		*missing, changed = made, true
	}
	return a, changed, nil
}

// retires is true if the next CA takes over.
func (a authority) retires(now time.Time) bool {
	if a.current == nil {
		return true
	}
	return isOld(a.current.parsed, now) && now.Sub(a.next.parsed.NotBefore) >= settle+clockSkew
}

// isOld is true in the last third of a certificate's life.
func isOld(certificate *x509.Certificate, now time.Time) bool {
	return certificate.NotAfter.Sub(now) < certificate.NotAfter.Sub(certificate.NotBefore)/3
}

func newCA(now time.Time) (*ca, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "fleetgate-gateway"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	cert, key, err := issue(template, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	made := readCA(cert, key)
	if made == nil {
		return nil, errors.New("making a certificate authority: what was made is none")
	}
	return made, nil
}

// sign returns a leaf for the names, with its key. It does not outlive its CA.
func (c *ca) sign(names []string, now time.Time) (cert, key []byte, err error) {
	dnsNames, addresses := sortNames(names)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: names[0]},
		DNSNames:    dnsNames,
		IPAddresses: addresses,
		NotBefore:   now.Add(-clockSkew),
		NotAfter:    now.Add(leafLifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if c.parsed.NotAfter.Before(template.NotAfter) {
		template.NotAfter = c.parsed.NotAfter
	}
	if cert, key, err = issue(template, c); err != nil {
		return nil, nil, fmt.Errorf("signing a serving certificate: %w", err)
	}
	return cert, key, nil
}

// sortNames separates DNS names from addresses: a certificate has a field for each.
func sortNames(names []string) (dnsNames []string, addresses []net.IP) {
	for _, name := range names {
		if address := net.ParseIP(name); address != nil {
			addresses = append(addresses, address)
			continue
		}
		dnsNames = append(dnsNames, name)
	}
	return dnsNames, addresses
}

// serialBits is the length of a serial number: long enough to be unique.
const serialBits = 128

// issue creates a key and a certificate for it, signed by the CA or, without one, by itself.
func issue(template *x509.Certificate, by *ca) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits)); err != nil {
		return nil, nil, err
	}
	parent, signer := template, any(private)
	if by != nil {
		parent, signer = by.parsed, by.pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, private.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), nil
}
