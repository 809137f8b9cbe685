// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func advance(t *testing.T, a authority, now time.Time) (authority, bool) {
	t.Helper()
	advanced, changed, err := a.advanced(now)
	if err != nil {
		t.Fatal(err)
	}
	return advanced, changed
}

func signed(t *testing.T, by *ca, now time.Time) *x509.Certificate {
	t.Helper()
	cert, key, err := by.sign([]string{"gateway.fleet-system.svc"}, now)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := parseLeaf(material{cert: cert, key: key})
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

func TestAuthority_RotationKeepsTrust(t *testing.T) {
	before, changed := advance(t, authority{}, start)
	if !changed {
		t.Fatal("nothing was made")
	}
	due := start.Add(authorityLifetime*2/3 + time.Hour)
	after, changed := advance(t, before, due)
	if !changed || !bytes.Equal(after.current.cert, before.next.cert) {
		t.Fatal("the next CA did not take over")
	}
	if !verifies(before.bundle(), signed(t, after.current, due), due) {
		t.Error("a bundle from before the rotation does not verify a certificate from after it")
	}
	if !verifies(after.bundle(), signed(t, before.current, due), due) {
		t.Error("a bundle from after the rotation does not verify a certificate from before it")
	}
	third, _ := advance(t, after, due)
	if !bytes.Equal(third.bundle(), after.bundle()) {
		t.Error("the same moment rotates twice")
	}
}

func TestAuthority_Advances(t *testing.T) {
	fresh, _ := advance(t, authority{}, start)
	tests := map[string]struct {
		have    authority
		at      time.Time
		changed bool
		// signs is the signer afterwards; nil is a new one.
		signs []byte
	}{
		"not while it is young":            {fresh, start.Add(authorityLifetime / 2), false, fresh.current.cert},
		"in the last third of its life":    {fresh, start.Add(authorityLifetime * 3 / 4), true, fresh.next.cert},
		"when its key is gone":             {authority{next: fresh.next}, start.Add(time.Second), true, fresh.next.cert},
		"when the next one is missing":     {authority{current: fresh.current}, start, true, fresh.current.cert},
		"when there is nothing":            {authority{}, start, true, nil},
		"an authority without a next one":  {authority{current: fresh.current}, start.Add(authorityLifetime * 3 / 4), true, fresh.current.cert},
		"not with a next one just made":    {authority{current: fresh.current, next: mustCA(t, start.Add(authorityLifetime*3/4))}, start.Add(authorityLifetime * 3 / 4), false, fresh.current.cert},
		"with one that everybody has seen": {authority{current: fresh.current, next: mustCA(t, start.Add(authorityLifetime*3/4-settle))}, start.Add(authorityLifetime * 3 / 4), true, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, changed := advance(t, tt.have, tt.at)
			if changed != tt.changed {
				t.Errorf("changed is %v, want %v", changed, tt.changed)
			}
			if tt.signs != nil && !bytes.Equal(got.current.cert, tt.signs) {
				t.Error("another CA signs")
			}
			again := readAuthority(got.data())
			if again.current == nil || again.next == nil || !bytes.Equal(again.bundle(), got.bundle()) {
				t.Error("what is written does not read back")
			}
		})
	}
}

func mustCA(t *testing.T, now time.Time) *ca {
	t.Helper()
	made, err := newCA(now)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestSign_LeafDoesNotOutliveItsCA(t *testing.T) {
	made := mustCA(t, start)
	if leaf := signed(t, made, start.Add(authorityLifetime-time.Hour)); leaf.NotAfter.After(made.parsed.NotAfter) {
		t.Errorf("the leaf lives until %s, its CA until %s", leaf.NotAfter, made.parsed.NotAfter)
	}
	leaf := signed(t, made, start)
	if leaf.IsCA || leaf.VerifyHostname("gateway.fleet-system.svc") != nil || leaf.VerifyHostname("other") == nil {
		t.Errorf("the leaf is for %v, CA %v", leaf.DNSNames, leaf.IsCA)
	}
}

// A gateway whose clock was ten minutes ahead of the hub's issued a certificate that the hub's API
// server rejected for five minutes: no webhook and no request for a member was answered.
func TestSign_CertificateToleratesClockSkew(t *testing.T) {
	made := mustCA(t, start)
	leaf := signed(t, made, start)
	roots := x509.NewCertPool()
	roots.AddCert(made.parsed)
	for name, off := range map[string]time.Duration{"behind": -10 * time.Minute, "ahead": 10 * time.Minute} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: start.Add(off), DNSName: "gateway.fleet-system.svc"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSign_LeafIsValidForNamesAndAddresses(t *testing.T) {
	cert, key, err := mustCA(t, start).sign([]string{"gateway.fleet-system.svc", "gateway.example.com", "192.0.2.1", "2001:db8::1"}, start)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := parseLeaf(material{cert: cert, key: key})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway.fleet-system.svc", "gateway.example.com", "192.0.2.1", "[2001:db8::1]"} {
		if err := pair.Leaf.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if pair.Leaf.VerifyHostname("192.0.2.2") == nil {
		t.Error("the leaf is valid for an address that nobody named")
	}
}

func TestReadAuthority_IgnoresInvalidCAs(t *testing.T) {
	made := mustCA(t, start)
	cert, key, err := made.sign([]string{"a"}, start)
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2][]byte{
		"a leaf": {cert, key}, "a key of another": {made.cert, key}, "nothing": {nil, nil}, "garbage": {[]byte("x"), []byte("y")},
		"no key": {made.cert, nil}, "no certificate": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), made.key},
	} {
		if readCA(pair[0], pair[1]) != nil {
			t.Errorf("%s is taken for a CA", name)
		}
	}
}
