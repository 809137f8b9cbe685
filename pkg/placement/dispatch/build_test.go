// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
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
	parts, err := split([]part{
		{Part: snapshot.Part{Manifests: many, Hash: "old"}}, {Part: snapshot.Part{Manifests: numbered(3000, 100), Envelope: envelope}},
		{Part: snapshot.Part{Manifests: manifests("{}"), Hash: "small"}}, {}})
	if err != nil {
		t.Fatal(err)
	}
	works := built(t, binding(), parts...)
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
		if hash, err := snapshot.Hash(w.Spec.Workload.Manifests); parts[i].Hash != hash && parts[i].Hash != "small" && len(w.Spec.Workload.Manifests) > 0 || err != nil {
			t.Errorf("work %s has hash %q, want %q, %v", w.Name, parts[i].Hash, hash, err)
		}
		if parts[i].Envelope == nil && len(w.Spec.Workload.Manifests) > 1 {
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
		parts, err := split([]part{{Part: snapshot.Part{Manifests: manifests, Hash: "old"}}})
		if err != nil || len(parts) != 1 || parts[0].Hash != "old" {
			t.Errorf("%s: cut into %d, %v", name, len(parts), err)
		}
	}
}

func TestBuild_EnvelopeNamesOfEveryLengthFit(t *testing.T) {
	for length := 1; length <= validation.DNS1123SubdomainMaxLength; length++ {
		envelope := &placementv1beta1.EnvelopeIdentifier{Type: placementv1beta1.ResourceEnvelopeType, Namespace: "ns", Name: strings.Repeat("e", length)}
		first := part{Part: snapshot.Part{Envelope: envelope}}
		second := first
		second.piece = 1
		works := built(t, binding(), first, second)
		for _, w := range works {
			if wrong := validation.IsDNS1123Subdomain(w.Name); len(wrong) > 0 {
				t.Errorf("a name of %d characters: %q: %v", length, w.Name, wrong)
			}
			for key, value := range w.Labels {
				if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
					t.Errorf("a name of %d characters: label %s: %v", length, key, wrong)
				}
			}
			if diff := cmp.Diff(envelope, envelopeOf(w.Work)); diff != "" {
				t.Errorf("envelope (-want +got):\n%s", diff)
			}
		}
	}
}

func TestBuild_AddsAgentFinalizerForJoinedMember(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus][]string{
		metav1.ConditionTrue:    {placementv1beta1.WorkCleanupFinalizer},
		metav1.ConditionUnknown: nil,
		metav1.ConditionFalse:   nil,
		"":                      nil,
	} {
		member := memberNamed("m")
		if status != "" {
			member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionJoined, Status: status}}
		}
		works, err := build(input{binding: binding(), member: member}, "3", []part{plain("{}")})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, works[0].Finalizers); diff != "" {
			t.Errorf("Joined %q: finalizers (-want +got):\n%s", status, diff)
		}
	}
}
