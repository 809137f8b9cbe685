// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// numbered returns count manifests, each with at least that many bytes.
func numbered(count, bytes int) []placementv1beta1.Manifest {
	all := make([]placementv1beta1.Manifest, 0, count)
	for i := range count {
		all = append(all, manifests(fmt.Sprintf(`{"n":%d,"pad":%q}`, i, strings.Repeat("x", bytes)))...)
	}
	return all
}

func TestSplit_DividesPartsWhoseStatusWouldNotFit(t *testing.T) {
	envelope := &placementv1beta1.EnvelopeIdentifier{Type: placementv1beta1.ResourceEnvelopeType, Namespace: "ns", Name: "e"}
	many := numbered(4000, 150)
	group := &snapshot.Group{Index: "3", Parts: []snapshot.Part{
		{Manifests: many, Hash: "old"}, {Manifests: numbered(3000, 100), Envelope: envelope}, {Manifests: manifests("{}"), Hash: "small"}, {}}}
	cut, err := split(group)
	if err != nil {
		t.Fatal(err)
	}
	works, err := desiredWorks(binding(), cut, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	var joined []placementv1beta1.Manifest
	for i, w := range works {
		names = append(names, w.Name)
		size := 0
		for _, m := range w.Spec.Workload.Manifests {
			size += len(m.Raw) + statusBytes
		}
		if size > workBytes {
			t.Errorf("work %s has %d bytes", w.Name, size)
		}
		if hash, err := snapshot.Hash(w.Spec.Workload.Manifests); cut.Parts[i].Hash != hash && cut.Parts[i].Hash != "small" && len(w.Spec.Workload.Manifests) > 0 || err != nil {
			t.Errorf("work %s has hash %q, want %q, %v", w.Name, cut.Parts[i].Hash, hash, err)
		}
		if cut.Parts[i].Envelope == nil && len(w.Spec.Workload.Manifests) > 1 {
			joined = append(joined, w.Spec.Workload.Manifests...)
		}
	}
	name := placementv1beta1.EnvelopeWorkName("", "p", *envelope)
	if diff := cmp.Diff([]string{"p-work", "p-0", "p-1", name, name + "-1", "p-2", "p-3"}, names); diff != "" {
		t.Errorf("works (-want +got):\n%s", diff)
	}
	if !slices.EqualFunc(joined, many, func(a, b placementv1beta1.Manifest) bool { return string(a.Raw) == string(b.Raw) }) {
		t.Errorf("%d manifests became %d, or their order changed", len(many), len(joined))
	}
}

func TestSplit_KeepsPartsThatFit(t *testing.T) {
	for name, manifests := range map[string][]placementv1beta1.Manifest{
		"largest snapshot of common objects": numbered(800, 1000),
		"many small objects":                 numbered(1500, 150),
		"one object over the limit":          numbered(1, workBytes),
		"none":                               nil,
	} {
		group := &snapshot.Group{Parts: []snapshot.Part{{Manifests: manifests}}}
		if cut, err := split(group); err != nil || cut != group {
			t.Errorf("%s: cut into %d, %v", name, len(cut.Parts), err)
		}
	}
}

func TestDesiredWorks_EnvelopeNamesOfEveryLengthFit(t *testing.T) {
	for length := 1; length <= validation.DNS1123SubdomainMaxLength; length++ {
		envelope := &placementv1beta1.EnvelopeIdentifier{Type: placementv1beta1.ResourceEnvelopeType, Namespace: "ns", Name: strings.Repeat("e", length)}
		works, err := desiredWorks(binding(), &snapshot.Group{Parts: []snapshot.Part{{Envelope: envelope}, {Envelope: envelope, Piece: 1}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range works {
			if wrong := validation.IsDNS1123Subdomain(w.Name); len(wrong) > 0 {
				t.Errorf("a name of %d characters: %q: %v", length, w.Name, wrong)
			}
			for key, value := range w.Labels {
				if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
					t.Errorf("a name of %d characters: label %s: %v", length, key, wrong)
				}
			}
			if diff := cmp.Diff(envelope, envelopeOf(w)); diff != "" {
				t.Errorf("envelope (-want +got):\n%s", diff)
			}
		}
	}
}
