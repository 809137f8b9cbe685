// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
)

// released is a release in a registry, with its verifier.
type released struct {
	*setup
	images []image
	charts *packed
	all    []artifact
	signer *signer
	sound  []manifest
}

// again restores the release before any damage.
func (r *released) again() *released {
	r.registry.restore(r.sound)
	signer := *r.signer
	again := *r
	again.signer, again.all = &signer, slices.Clone(r.all)
	return &again
}

func newReleased(t *testing.T) *released {
	t.Helper()
	s := newSetup(t, ggcr.WithReferrersSupport(true))
	if err := s.release(t); err != nil {
		t.Fatal(err)
	}
	p, images := s.planned(t)
	r := &released{setup: s, images: images, charts: &packed{}, sound: s.registry.saved()}
	signer, err := p.keys.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.signer = signer
	for i, command := range commands {
		r.charts.all = append(r.charts.all, &chart{command: command, digest: s.digests(t)[len(commands)+i]})
	}
	from, err := p.readSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	provenance, err := p.origin(from, r.images)
	if err != nil {
		t.Fatal(err)
	}
	r.all = artifacts(r.images, r.charts, provenance)
	return r
}

func (r *released) verify(t *testing.T) error {
	t.Helper()
	return r.signer.verifier.verifyRelease(t.Context(), r.all, r.images, r.charts)
}

// statements returns the manifests of one type that are attached to a digest.
func statements(t *testing.T, digest name.Digest, predicateType string) []v1.Descriptor {
	t.Helper()
	index, err := remote.Referrers(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var found []v1.Descriptor
	for _, one := range manifest.Manifests {
		image, err := remote.Image(digest.Digest(one.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		described, err := image.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		if described.Annotations[ociremote.BundlePredicateType] == predicateType {
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no statement of type %s", digest, predicateType)
	}
	return found
}

// take removes the statements of one type from a digest.
func take(t *testing.T, digest name.Digest, predicateType string) {
	t.Helper()
	for _, one := range statements(t, digest, predicateType) {
		if err := remote.Delete(digest.Digest(one.Digest.String())); err != nil {
			t.Fatal(err)
		}
	}
}

// attach signs a statement with the release's key and attaches it.
func (r *released) attach(t *testing.T, digest name.Digest, what statement) {
	t.Helper()
	if err := r.signer.attach(t.Context(), digest, what); err != nil {
		t.Fatal(err)
	}
}

// move attaches the statements of one digest to another.
func move(t *testing.T, from, to name.Digest, predicateType string) {
	t.Helper()
	image, err := remote.Image(from.Digest(statements(t, from, predicateType)[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := pullChart(t.Context(), from.Digest(mustDigest(t, image)))
	if err != nil {
		t.Fatal(err)
	}
	if err := ociremote.WriteAttestationNewBundleFormat(to, bundle, predicateType); err != nil {
		t.Fatal(err)
	}
}

func mustDigest(t *testing.T, image interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// spoilLayer changes one byte in the only layer of an image.
func (r *released) spoilLayer(t *testing.T, digest name.Digest) {
	t.Helper()
	image, err := remote.Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	body, err := pullChart(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	body[len(body)-1]++
	r.registry.change("/blobs/"+manifest.Layers[0].Digest.String(), body)
}

// damage is one defect of a release.
type damage struct {
	// spoil causes it, and returns the digest that the error must name in addition to the text.
	spoil func(t *testing.T, r *released) (named name.Digest)
	want  string
}

// wrongContent are defects of the registry's contents.
func wrongContent() map[string]damage {
	return map[string]damage{
		"a changed layer of an image": {func(t *testing.T, r *released) name.Digest {
			r.spoilLayer(t, r.images[1].platforms[1].digest)
			return r.images[1].digest
		}, "does not verify: validating children"},
		"a changed layer of a chart": {func(t *testing.T, r *released) name.Digest {
			r.spoilLayer(t, r.charts.all[1].digest)
			return r.charts.all[1].digest
		}, "does not verify: error verifying sha256"},
		"a changed index": {func(t *testing.T, r *released) name.Digest {
			r.registry.change("/manifests/"+r.images[0].digest.DigestStr(), []byte(`{"schemaVersion": 2, "manifests": []}`))
			return r.images[0].digest
		}, "manifest digest"},
		"a chart with images of another release": {func(_ *testing.T, r *released) name.Digest {
			r.images = r.images[:1]
			return r.charts.all[0].digest
		}, "which is none of this release"},
	}
}

// wrongStatements are defects of the statements.
func wrongStatements() map[string]damage {
	return map[string]damage{
		"another key": {func(t *testing.T, r *released) name.Digest {
			private, _ := newKey(t)
			other, err := keys{file: private}.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r.signer.verifier = other.verifier
			return r.images[0].digest
		}, "its signature does not verify"},
		"another digest": {func(t *testing.T, r *released) name.Digest {
			other, err := random.Index(64, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			strange := r.images[0].digest.Digest(mustDigest(t, other))
			if err := remote.WriteIndex(strange, other); err != nil {
				t.Fatal(err)
			}
			move(t, r.images[0].digest, strange, signatureType)
			move(t, r.images[0].digest, strange, provenanceType)
			r.all[0].digest = strange
			return strange
		}, "its signature does not verify"},
		"no SBOM": {func(t *testing.T, r *released) name.Digest {
			take(t, r.images[1].platforms[0].digest, sbomType)
			return r.images[1].platforms[0].digest
		}, "it has no SBOM"},
		"the SBOM of another image": {func(t *testing.T, r *released) name.Digest {
			digest := r.images[1].platforms[0].digest
			take(t, digest, sbomType)
			r.attach(t, digest, statement{"SBOM", sbomType, json.RawMessage(`{"name": "another"}`)})
			return digest
		}, "its SBOM says something else than this release"},
		"no provenance": {func(t *testing.T, r *released) name.Digest {
			take(t, r.charts.all[0].digest, provenanceType)
			return r.charts.all[0].digest
		}, "it has no provenance"},
		"another commit": {func(t *testing.T, r *released) name.Digest {
			take(t, r.images[0].digest, provenanceType)
			r.attach(t, r.images[0].digest, statement{"provenance", provenanceType, json.RawMessage(`{"buildDefinition": {}}`)})
			return r.images[0].digest
		}, "its provenance says something else than this release"},
		"no signature": {func(t *testing.T, r *released) name.Digest {
			take(t, r.charts.all[0].digest, signatureType)
			return r.charts.all[0].digest
		}, "it has no signature"},
		"nothing is said of it": {func(t *testing.T, r *released) name.Digest {
			take(t, r.charts.all[0].digest, signatureType)
			take(t, r.charts.all[0].digest, provenanceType)
			return r.charts.all[0].digest
		}, "has no signature and no statement"},
	}
}

func TestVerifyRelease_NamesDefect(t *testing.T) {
	sound, damages := newReleased(t), wrongContent()
	maps.Copy(damages, wrongStatements())
	for name, test := range damages {
		t.Run(name, func(t *testing.T) {
			r := sound.again()
			if err := r.verify(t); err != nil {
				t.Fatalf("a sound release: %v", err)
			}
			named := test.spoil(t, r)
			err := r.verify(t)
			contains(t, err, test.want)
			contains(t, err, named.DigestStr())
		})
	}
}

func TestCheckPinned_RejectsOtherImages(t *testing.T) {
	digest, err := name.NewDigest("registry.example.org/fleetgate/agent@sha256:" + strings.Repeat("a", 64))
	if err != nil {
		t.Fatal(err)
	}
	images := []image{{command: "agent", digest: digest}}
	if err := checkPinned([]byte("image:\n  repository: registry.example.org/fleetgate/agent\n  digest: "+digest.DigestStr()+"\n"), images); err != nil {
		t.Errorf("the image of the release is refused: %v", err)
	}
	for values, problem := range map[string]string{
		"image:\n  repository: registry.example.org/fleetgate/agent\n  tag: v1\n":                                        "by no digest",
		"image:\n  repository: registry.example.org/fleetgate/agent\n  digest: sha256:" + strings.Repeat("b", 64) + "\n": "none of this release",
		"image:\n  repository: other.example.org/fleetgate/agent\n  digest: sha256:" + strings.Repeat("a", 64) + "\n":    "none of this release",
		"image:\n  repository: \"\"\n": "name no image",
		"image: [":                     "reading its values",
	} {
		contains(t, checkPinned([]byte(values), images), problem)
	}
}
