// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/sigstore-go/pkg/root"
)

const tokenVariable = "SIGSTORE_ID_TOKEN"

func TestRelease_KeylessSignsForTokenIdentity(t *testing.T) {
	s, public := newSetup(t), newSigstore(t)
	t.Setenv(tokenVariable, tokenFor(releaser))
	if err := s.release(t, public.keyless(releaser, issuer)...); err != nil {
		t.Fatal(err)
	}
	issued, logged := public.seen()
	if !slices.Equal(issued, []string{releaser}) {
		t.Errorf("certificates were issued for %q, want one for the release", issued)
	}
	digests := s.digests(t)
	if len(digests) != 2*len(commands) {
		t.Fatalf("%d digests, want an image and a chart of each command: %v", len(digests), digests)
	}
	if least := 2 * len(digests); logged < least {
		t.Errorf("%d signatures were logged, want one of each statement, %d at least", logged, least)
	}
	trusted, err := root.NewTrustedRootFromPath(public.roots)
	if err != nil {
		t.Fatal(err)
	}
	// This is what `cosign verify --certificate-identity --certificate-oidc-issuer` does.
	accepts := func(identity, by string, whom root.TrustedMaterial) error {
		for _, digest := range digests {
			options := &cosign.CheckOpts{
				NewBundleFormat: true, TrustedMaterial: whom, Identities: []cosign.Identity{{Issuer: by, Subject: identity}},
				ClaimVerifier: cosign.IntotoSubjectClaimVerifier,
			}
			if _, _, err := cosign.VerifyImageAttestations(t.Context(), digest, options); err != nil {
				return err
			}
		}
		return nil
	}
	if err := accepts(releaser, issuer, trusted); err != nil {
		t.Errorf("cosign does not accept what was signed: %v", err)
	}
	if accepts("other@example.org", issuer, trusted) == nil {
		t.Error("cosign accepts it as signed by somebody else")
	}
	if accepts(releaser, "https://other.example.org", trusted) == nil {
		t.Error("cosign accepts it as signed with another issuer's token")
	}
	stranger, err := root.NewTrustedRootFromPath(newSigstore(t).roots)
	if err != nil {
		t.Fatal(err)
	}
	if accepts(releaser, issuer, stranger) == nil {
		t.Error("cosign accepts it from services that nobody trusts")
	}
}

func TestRelease_RejectsSignatureOfAnotherIdentity(t *testing.T) {
	for name, test := range map[string]struct{ holder, identity, issuer string }{
		"another holder of the token": {"other@example.org", releaser, issuer},
		"another issuer":              {releaser, releaser, "https://other.example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			s, public := newSetup(t), newSigstore(t)
			token := tokenFor(test.holder)
			t.Setenv(tokenVariable, token)
			err := s.release(t, public.keyless(test.identity, test.issuer)...)
			contains(t, err, "verifying what was pushed")
			if err != nil && strings.Contains(err.Error(), token) {
				t.Error("the token is in the error")
			}
			if digests := s.digests(t); len(digests) > 0 {
				t.Errorf("there is a list of digests without a release: %v", digests)
			}
		})
	}
}

func TestRelease_LogsKeySignaturesOnRequest(t *testing.T) {
	s, public := newSetup(t), newSigstore(t)
	if err := s.release(t, "-transparency-log", "-signing-config="+public.services, "-trusted-root="+public.roots); err != nil {
		t.Fatal(err)
	}
	issued, logged := public.seen()
	if least := 2 * len(s.digests(t)); len(issued) > 0 || least == 0 || logged < least {
		t.Errorf("%d signatures were logged, want %d at least; certificates were issued for %q, want none", logged, least, issued)
	}
}
