// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"

	"fleetgate.io/fleetgate/test/support/bomb"
)

func TestCertificates_RefusesExpensiveKey(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		read func() error
		want string
	}{
		"an authority":                   {func() error { return authorities(bomb.Authority(t)) }, "8192 bits in its RSA key"},
		"an authority beside another":    {func() error { return authorities(slices.Concat(certificate, bomb.Authority(t))) }, "8192 bits in its RSA key"},
		"a private key":                  {func() error { return CheckKeyPair(certificate, bomb.Key(t)) }, "16384 bytes"},
		"an authority of today":          {func() error { return authorities(certificate) }, ""},
		"one beside what is none":        {func() error { return authorities(slices.Concat([]byte("text\n"), key, certificate)) }, ""},
		"a certificate with its key":     {func() error { return CheckKeyPair(certificate, key) }, ""},
		"a certificate without a key":    {func() error { return CheckKeyPair(certificate, nil) }, "no certificate and its key"},
		"a key in place of an authority": {func() error { return authorities(key) }, "no certificate"},
		"no authority":                   {func() error { return authorities(nil) }, "no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.read()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if limit := (*LimitError)(nil); strings.Contains(test.want, "8192") && !errors.As(err, &limit) {
				t.Errorf("%v is no LimitError", err)
			}
		})
	}
}

func authorities(text []byte) error {
	_, err := Certificates(text)
	return err
}
