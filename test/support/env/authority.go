// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 365 * 24 * time.Hour
	// clockSkew backdates certificates, so that programs whose clock is ten minutes behind accept
	// them too.
	clockSkew = 15 * time.Minute
)

// pair is a certificate and its private key, PEM encoded.
type pair struct{ cert, key []byte }

// write writes <name>.crt and <name>.key to dir.
func (p pair) write(dir, name string) error {
	if err := writeFile(filepath.Join(dir, name+".crt"), p.cert); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, name+".key"), p.key)
}

// authority signs certificates: each cluster has one for its servers and clients, one for
// its front proxy and one for its etcd.
type authority struct {
	pair
	signer *x509.Certificate
	key    *ecdsa.PrivateKey
}

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotAfter:              time.Now().Add(authorityLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	made, err := sign(template, key, template, key)
	if err != nil {
		return nil, err
	}
	return parseAuthority(made)
}

func parseAuthority(p pair) (*authority, error) {
	loaded, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	key, ok := loaded.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("its key is a %T, not an ECDSA key", loaded.PrivateKey)
	}
	return &authority{pair: p, signer: loaded.Leaf, key: key}, nil
}

// client issues a client certificate for a user.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server issues a certificate for a server on loopback with these additional names or addresses. It
// is also valid for clients: etcd dials itself with it.
func (a *authority) server(name string, hosts ...string) (pair, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:    []string{"localhost"},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	return a.issue(template)
}

func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := newKey()
	if err != nil {
		return pair{}, err
	}
	template.NotAfter = time.Now().Add(certificateLife)
	template.KeyUsage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
	issued, err := sign(template, key, a.signer, a.key)
	if err != nil {
		return pair{}, fmt.Errorf("issuing a certificate for %q: %w", template.Subject.CommonName, err)
	}
	return issued, nil
}

func sign(template *x509.Certificate, key *ecdsa.PrivateKey, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return pair{}, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-clockSkew)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return pair{}, err
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: encodePEM("CERTIFICATE", der), key: keyPEM}, nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return encodePEM("EC PRIVATE KEY", der), nil
}

func encodePublicKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	return encodePEM("PUBLIC KEY", der), nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
