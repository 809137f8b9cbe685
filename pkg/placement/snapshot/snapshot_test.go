// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func manifest(text string) placementv1beta1.Manifest {
	return placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}}
}

func TestPolicyHash(t *testing.T) {
	hash := func(p *placementv1beta1.PlacementPolicy) string {
		t.Helper()
		h, err := policyHash(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(h)
	}
	base := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(1))}
	if len(hash(base)) != 64 {
		t.Errorf("hash %q is no hexadecimal SHA-256", hash(base))
	}
	scaled := base.DeepCopy()
	*scaled.NumberOfClusters = 2
	if hash(base) != hash(scaled) {
		t.Error("scaling changes the hash")
	}
	tolerant := base.DeepCopy()
	tolerant.Tolerations = []placementv1beta1.Toleration{{Key: "a"}}
	if hash(base) == hash(tolerant) {
		t.Error("a changed policy has the same hash")
	}
	if got := policyOf(&placementv1beta1.PlacementSpec{}); got.PlacementType != placementv1beta1.PickAll {
		t.Errorf("placement type without a policy = %q", got.PlacementType)
	}
}

func TestStandsFor_AcceptsForeignHashOfSamePolicy(t *testing.T) {
	policy := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(2)),
		Tolerations: []placementv1beta1.Toleration{{Key: "a"}}}
	without := policy.DeepCopy()
	without.NumberOfClusters = nil
	other := policy.DeepCopy()
	other.Tolerations[0].Key = "b"
	everywhere := policyOf(&placementv1beta1.PlacementSpec{})
	tests := map[string]struct {
		theirs, policy *placementv1beta1.PlacementPolicy
		hash           string
		want           bool
	}{
		"our hash":                            {other, policy, "ours", true},
		"number of clusters in an annotation": {without, policy, "theirs", true},
		"no policy equals PickAll":            {nil, everywhere, "theirs", true},
		"policy changed":                      {other, policy, "theirs", false},
		"policy added":                        {nil, policy, "theirs", false},
		"only number and hash changed":        {policy, without, "theirs", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &placementv1beta1.SchedulingPolicySnapshotSpec{Policy: tt.theirs, PolicyHash: []byte(tt.hash)}
			if got := isOfPolicy(spec, tt.policy, []byte("ours")); got != tt.want {
				t.Errorf("standsFor() = %t, want %t", got, tt.want)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	sizes := func(pieces [][]placementv1beta1.Manifest) []int {
		var all []int
		for _, p := range pieces {
			all = append(all, len(p))
		}
		return all
	}
	cases := map[string]struct {
		lengths []int
		want    []int
	}{
		"nothing gives one empty piece":            {nil, []int{0}},
		"all fit":                                  {[]int{4, 4}, []int{2}},
		"exactly full":                             {[]int{5, 5, 5}, []int{2, 1}},
		"large object gets its own piece":          {[]int{1, 30, 1}, []int{1, 1, 1}},
		"large first object leaves no empty piece": {[]int{30, 1}, []int{1, 1}},
		"order is kept and gaps are not filled":    {[]int{6, 6, 3, 9}, []int{1, 2, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var manifests []placementv1beta1.Manifest
			for _, n := range tc.lengths {
				manifests = append(manifests, manifest(fmt.Sprintf("%0*d", n, 0)))
			}
			if diff := cmp.Diff(tc.want, sizes(split(manifests, 10))); diff != "" {
				t.Errorf("split() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredResourceSnapshots(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	group := desiredResourceSnapshots(placement, [][]placementv1beta1.Manifest{{manifest("1")}, {manifest("2")}, {manifest("3")}}, "hash", 4, Envelopes{})
	var names []string
	for _, s := range group {
		names = append(names, s.GetName()+"="+string(s.GetSpec().SelectedResources[0].Raw))
	}
	if diff := cmp.Diff([]string{"p-4-0=2", "p-4-1=3", "p-4-snapshot=1"}, names); diff != "" {
		t.Errorf("names, master last (-want +got):\n%s", diff)
	}
	want := map[string]string{
		placementv1beta1.ResourceHashAnnotation: "hash", placementv1beta1.NumberOfResourceSnapshotsAnnotation: "3",
		placementv1beta1.NumberOfEnvelopedObjectsAnnotation: "0",
	}
	if diff := cmp.Diff(want, group[2].GetAnnotations()); diff != "" {
		t.Errorf("annotations of the master (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{placementv1beta1.SubindexAnnotation: "1"}, group[1].GetAnnotations()); diff != "" {
		t.Errorf("annotations of a sub snapshot (-want +got):\n%s", diff)
	}
}

func TestSurplus(t *testing.T) {
	snap := func(name string, index int, master bool) *metav1.PartialObjectMetadata {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{placementv1beta1.ResourceIndexLabel: strconv.Itoa(index)}}}
		if master {
			m.Annotations = map[string]string{placementv1beta1.ResourceHashAnnotation: "x"}
		}
		return m
	}
	all := []*metav1.PartialObjectMetadata{
		snap("m0", 0, true), snap("s0", 0, false), snap("m1", 1, true), snap("orphan2", 2, false),
		snap("m3", 3, true), snap("m4", 4, true), snap("half5", 5, false),
	}
	cases := map[string]struct {
		limit int
		used  map[string]bool
		want  []string
	}{
		"within the limit only orphans are deleted": {limit: 10, want: []string{"orphan2"}},
		"oldest groups are deleted completely":      {limit: 2, want: []string{"m0", "s0", "m1", "orphan2"}},
		"used group stays":                          {limit: 1, used: map[string]bool{"m0": true}, want: []string{"m1", "orphan2", "m3"}},
		"newest incomplete group stays":             {limit: 1, want: []string{"m0", "s0", "m1", "orphan2", "m3"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range surplus(all, tc.limit, tc.used) {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("surplus() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHash_IgnoresEncoding(t *testing.T) {
	hash := func(text string) string {
		t.Helper()
		h, err := Hash([]placementv1beta1.Manifest{manifest(text)})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash(`{"a":"<b>","c":1}`) != hash(`{ "c":1, "a":"\u003cb\u003e" }`) {
		t.Error("another encoding of the same object has another hash: its Work would be written repeatedly")
	}
	if hash(`{"a":1}`) == hash(`{"a":2}`) {
		t.Error("different objects have the same hash")
	}
}

// Policy snapshots store the hash. Another value would take a new snapshot of every placement.
func TestPolicyHash_StaysTheSame(t *testing.T) {
	got, err := policyHash(&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(1))})
	if want := "479f405eb7808cfc58366b2648680a3a815ef914fe6756ae8df0d6f74885416a"; err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
