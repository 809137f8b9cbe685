// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/sigstore/cosign/v3/pkg/cosign"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// statementsOf returns the predicate types that cosign accepts for a digest and a key, as `cosign
// verify --key` and `cosign verify-attestation --key` do.
func statementsOf(t *testing.T, public string, digest name.Reference) []string {
	t.Helper()
	text, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	trusted, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	verified, _, err := cosign.VerifyImageAttestations(t.Context(), digest, &cosign.CheckOpts{
		NewBundleFormat: true, IgnoreTlog: true, SigVerifier: trusted, ClaimVerifier: cosign.IntotoSubjectClaimVerifier,
	})
	if err != nil {
		t.Fatalf("cosign of %s: %v", digest, err)
	}
	var types []string
	for _, one := range verified {
		text, err := one.Payload()
		if err != nil {
			t.Fatal(err)
		}
		var envelope struct{ Payload []byte }
		var claim struct{ PredicateType string }
		if err := json.Unmarshal(text, &envelope); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(envelope.Payload, &claim); err != nil {
			t.Fatal(err)
		}
		types = append(types, claim.PredicateType)
	}
	slices.Sort(types)
	return types
}

func TestRelease_IsAcceptedByCosignAndHelm(t *testing.T) {
	for name, options := range map[string][]ggcr.Option{
		"a registry with referrers":     {ggcr.WithReferrersSupport(true)},
		"a registry that has only tags": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, options...)
			if err := s.release(t); err != nil {
				t.Fatal(err)
			}
			digests := s.digests(t)
			if len(digests) != 2*len(commands) {
				t.Fatalf("%d digests, want an image and a chart of each command: %v", len(digests), digests)
			}
			for _, digest := range digests {
				if got := statementsOf(t, s.public, digest); !slices.Equal(got, []string{signatureType, provenanceType}) {
					t.Errorf("cosign accepts %q of %s, want signature and provenance", got, digest)
				}
			}
			_, images := s.planned(t)
			for _, platform := range append(images[0].platforms, images[1].platforms...) {
				if got := statementsOf(t, s.public, platform.digest); !slices.Equal(got, []string{signatureType, provenanceType, sbomType}) {
					t.Errorf("cosign accepts %q of %s, want signature, provenance and SBOM", got, platform.digest)
				}
			}
			for _, command := range commands {
				if _, err := remote.Image(digests[0].Registry.Repo("fleetgate", "charts", command).Tag("artifacthub.io")); err != nil {
					t.Errorf("what Artifact Hub reads of the charts of %s: %v", command, err)
				}
			}
			if got, want := imagesOfChart(t, s, digests[3]), []string{images[1].digest.Name()}; !slices.Equal(got, want) {
				t.Errorf("the agent's chart as helm renders it runs %q, want %q", got, want)
			}
		})
	}
}

// imagesOfChart pulls and renders a chart of the agent with helm.
func imagesOfChart(t *testing.T, s *setup, chart name.Digest) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), helm, "template", "agent", "oci://"+chart.Name(), "--plain-http",
		"--set=config.memberClusterName=member-1,config.hubURL=https://hub.example.org").CombinedOutput()
	if err != nil {
		t.Fatalf("helm template: %v: %s", err, out)
	}
	var images []string
	for line := range strings.Lines(string(out)) {
		if image, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); ok {
			images = append(images, strings.Trim(image, `"`))
		}
	}
	return images
}

func TestRelease_IsReproducible(t *testing.T) {
	s := newSetup(t)
	if err := s.release(t); err != nil {
		t.Fatal(err)
	}
	first := s.digests(t)
	s.registry.empty()
	if err := s.release(t); err != nil {
		t.Fatal(err)
	}
	if second := s.digests(t); !slices.Equal(first, second) {
		t.Errorf("the first time %v, the second time %v", first, second)
	}
	if err := s.release(t); err != nil {
		t.Errorf("a release could not be made again where it lies: %v", err)
	}
}

func TestRelease_NeverOverwritesVersion(t *testing.T) {
	for name, test := range map[string]struct {
		change func(t *testing.T, s *setup) (more []string)
		want   string
	}{
		"other images": {func(t *testing.T, s *setup) []string {
			s.images = buildImages(t)
			s.bundle(t, 1700000000)
			return nil
		}, "/fleetgate/gateway:v0.9.0 is in the registry already"},
		"other charts": {func(t *testing.T, s *setup) []string {
			s.bundle(t, 1700000001)
			return nil
		}, "/fleetgate/charts/gateway:0.9.0 is in the registry already"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			if err := s.release(t); err != nil {
				t.Fatal(err)
			}
			before := s.registry.written()
			contains(t, s.release(t, test.change(t, s)...), test.want)
			if after := s.registry.written(); after != before {
				t.Errorf("%d things were written over what lies there", after-before)
			}
			if digests := s.digests(t); len(digests) > 0 {
				t.Errorf("there is a list of digests without a release: %v", digests)
			}
		})
	}
}

func TestRelease_RejectsInvalidInputBeforePush(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, s *setup)
		more    []string
		want    string
	}{
		"nobody said where to":       {nil, []string{"-push="}, "say where to push"},
		"a tree with changes":        {func(t *testing.T, s *setup) { write(t, s.tree, "new.go") }, nil, "the tree has changes"},
		"a commit without a tag":     {nil, []string{"-version=v0.9.1"}, "does not have the tag v0.9.1"},
		"only looked at":             {func(t *testing.T, s *setup) { write(t, s.tree, "new.go") }, []string{"-check"}, "the tree has changes"},
		"no image was built":         {func(t *testing.T, s *setup) { s.images = t.TempDir() }, nil, "that make images has built"},
		"an SBOM is missing":         {func(t *testing.T, s *setup) { remove(t, s.images, "agent-arm64.spdx.json") }, nil, "agent-arm64.spdx.json"},
		"two compilers":              {func(t *testing.T, s *setup) { writeSBOM(t, s.images, "agent", "arm64", "1.25.0") }, nil, "agent for linux/arm64 was built by Go 1.25.0"},
		"another password":           {func(t *testing.T, _ *setup) { t.Setenv(passwordVariable, "not that password") }, nil, "with the password in COSIGN_PASSWORD"},
		"no password":                {func(t *testing.T, _ *setup) { unset(t, passwordVariable) }, nil, "put the password of the key"},
		"no key":                     {nil, []string{"-key="}, "say who signs"},
		"keyless without a token":    {noToken, []string{"-key=", "-identity=me@example.org", "-issuer=https://example.org"}, "SIGSTORE_ID_TOKEN"},
		"charts of other images":     {func(t *testing.T, s *setup) { s.images = buildImages(t) }, nil, "which is none of this release"},
		"services that do not exist": {nil, []string{"-transparency-log", "-signing-config=none.json"}, "which services sign"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t)
			if test.prepare != nil {
				test.prepare(t, s)
			}
			err := s.release(t, test.more...)
			contains(t, err, test.want)
			if err != nil && strings.Contains(err.Error(), os.Getenv(passwordVariable)) && os.Getenv(passwordVariable) != "" {
				t.Errorf("the password is in the error: %v", err)
			}
			if s.registry.written() > 0 || len(s.digests(t)) > 0 {
				t.Errorf("%d things were written to the registry, and the list has %v", s.registry.written(), s.digests(t))
			}
		})
	}
}

func write(t *testing.T, folder, file string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, file), []byte("package new\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, folder, file string) {
	t.Helper()
	if err := os.Remove(filepath.Join(folder, file)); err != nil {
		t.Fatal(err)
	}
}

// unset unsets a variable until the test ends.
func unset(t *testing.T, variable string) {
	t.Helper()
	t.Setenv(variable, "")
	if err := os.Unsetenv(variable); err != nil {
		t.Fatal(err)
	}
}

func noToken(t *testing.T, _ *setup) {
	for _, variable := range []string{"SIGSTORE_ID_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_TOKEN", "ACTIONS_ID_TOKEN_REQUEST_URL"} {
		unset(t, variable)
	}
}

func TestRelease_FailsWithoutTransparencyLog(t *testing.T) {
	s := newSetup(t)
	folder := t.TempDir()
	services, roots := filepath.Join(folder, "services.json"), filepath.Join(folder, "roots.json")
	// No server listens there.
	if err := os.WriteFile(services, []byte(`{"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
		"rekorTlogUrls": [{"url": "http://127.0.0.1:1", "majorApiVersion": 1, "validFor": {"start": "2020-01-01T00:00:00Z"}, "operator": "test"}],
		"rekorTlogConfig": {"selector": "ANY"}, "tsaConfig": {"selector": "ANY"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(roots, []byte(`{"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, s.release(t, "-transparency-log", "-signing-config="+services, "-trusted-root="+roots), "127.0.0.1:1")
	if digests := s.digests(t); len(digests) > 0 {
		t.Errorf("there is a list of digests without a release: %v", digests)
	}
}

func TestRelease_FailsWhenRegistryReturnsOtherContent(t *testing.T) {
	s := newSetup(t)
	layers, err := filepath.Glob(filepath.Join(s.images, "agent", "blobs", "sha256", "*"))
	if err != nil || len(layers) == 0 {
		t.Fatalf("finding what was built: %v", err)
	}
	for _, layer := range layers {
		s.registry.change("/blobs/sha256:"+filepath.Base(layer), []byte("something else"))
	}
	err = s.release(t)
	contains(t, err, "verifying what was pushed")
	contains(t, err, "/fleetgate/agent@sha256:")
	if digests := s.digests(t); len(digests) > 0 {
		t.Errorf("there is a list of digests without a release: %v", digests)
	}
}

func TestProvenance(t *testing.T) {
	s := newSetup(t)
	p, images := s.planned(t)
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for name, test := range map[string]struct {
		from              source
		digest            string
		changed, untagged bool
	}{
		"a tag":               {source{commit: commit, tagged: true}, commit, false, false},
		"a commit":            {source{commit: commit}, commit, false, true},
		"a tree with changes": {source{commit: commit, changed: true}, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := p.origin(test.from, images)
			if err != nil {
				t.Fatal(err)
			}
			var predicate struct {
				BuildDefinition struct {
					ExternalParameters struct {
						Source, Version   string
						Changed, Untagged bool
					}
					InternalParameters   struct{ Go string }
					ResolvedDependencies []struct {
						URI    string
						Digest map[string]string
					}
				}
			}
			if err := json.Unmarshal(text, &predicate); err != nil {
				t.Fatal(err)
			}
			parameters, built := predicate.BuildDefinition.ExternalParameters, predicate.BuildDefinition.ResolvedDependencies[0]
			if parameters.Changed != test.changed || parameters.Untagged != test.untagged || parameters.Version != version {
				t.Errorf("parameters are %+v", parameters)
			}
			if built.URI != "git+https://example.org/fleetgate@"+commit || built.Digest["gitCommit"] != test.digest {
				t.Errorf("built from %+v, want digest %q", built, test.digest)
			}
			if predicate.BuildDefinition.InternalParameters.Go != "1.26.0" {
				t.Errorf("built by Go %q, and the SBOMs say 1.26.0", predicate.BuildDefinition.InternalParameters.Go)
			}
		})
	}
}
