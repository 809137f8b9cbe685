// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var signedAt = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// newAuthority returns a self-signed certificate, and its key.
func newAuthority(t *testing.T, ends time.Time, isCA bool) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub"}, NotBefore: signedAt.Add(-time.Hour), NotAfter: ends,
		IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

func TestSign(t *testing.T) {
	for name, tc := range map[string]struct {
		seconds *int32
		ends    time.Time // the authority
		want    time.Duration
	}{
		"a year if nobody asks":          {nil, signedAt.AddDate(5, 0, 0), 365 * 24 * time.Hour},
		"as long as was asked for":       {ptr.To[int32](3600), signedAt.AddDate(5, 0, 0), time.Hour},
		"never so short as to be of use": {ptr.To[int32](1), signedAt.AddDate(5, 0, 0), 10 * time.Minute},
		"not longer than a year":         {ptr.To[int32](10 * 365 * 24 * 3600), signedAt.AddDate(50, 0, 0), 365 * 24 * time.Hour},
		"not longer than the authority":  {nil, signedAt.Add(30 * time.Minute), 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			certificate, key := newAuthority(t, tc.ends, true)
			signer, err := NewSigner(certificate, key, clocktesting.NewFakePassiveClock(signedAt))
			if err != nil {
				t.Fatal(err)
			}
			ask := newRequest(t)
			signed, err := signer.Sign(ask.build(t).Spec.Request, tc.seconds)
			if err != nil {
				t.Fatal(err)
			}
			block, _ := pem.Decode(signed)
			got, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM(certificate)
			if _, err := got.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: signedAt, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
				t.Errorf("it is no client's certificate of the authority: %v", err)
			}
			if _, err := got.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: signedAt}); err == nil {
				t.Error("it is a server's certificate, too")
			}
			if got.NotAfter.Sub(signedAt) != tc.want || got.Subject.CommonName != ask.subject.CommonName || got.IsCA || len(got.DNSNames) > 0 {
				t.Errorf("it ends after %v, and is for %v", got.NotAfter.Sub(signedAt), got.Subject)
			}
		})
	}
}

func TestNewSigner_RefusesInvalidAuthority(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(signedAt)
	certificate, key := newAuthority(t, signedAt.AddDate(1, 0, 0), false)
	if _, err := NewSigner(certificate, key, clock); err == nil {
		t.Error("a certificate that is no authority's signs")
	}
	authority, _ := newAuthority(t, signedAt.AddDate(1, 0, 0), true)
	if _, err := NewSigner(authority, key, clock); err == nil {
		t.Error("a key of another authority signs")
	}
	expired, key := newAuthority(t, signedAt, true)
	signer, err := NewSigner(expired, key, clock)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signer.Sign(newRequest(t).build(t).Spec.Request, nil); err == nil {
		t.Error("an authority that has expired signs")
	}
}

func TestSign_MemberAgentGetsADay(t *testing.T) {
	certificate, key := newAuthority(t, signedAt.AddDate(5, 0, 0), true)
	signer, err := NewSigner(certificate, key, clocktesting.NewFakePassiveClock(signedAt))
	if err != nil {
		t.Fatal(err)
	}
	for _, seconds := range []*int32{nil, ptr.To[int32](30 * 24 * 3600), ptr.To[int32](3600)} {
		ask := newRequest(t)
		ask.subject.CommonName = "system:open-cluster-management:edge:fleetgate"
		signed, err := signer.Sign(ask.build(t).Spec.Request, seconds)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(signed)
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		want := min(24*time.Hour, time.Duration(ptr.Deref(seconds, 1<<30))*time.Second)
		if got := leaf.NotAfter.Sub(signedAt); got != want {
			t.Errorf("asked for %v seconds: valid for %s, want %s", ptr.Deref(seconds, 0), got, want)
		}
	}
}
