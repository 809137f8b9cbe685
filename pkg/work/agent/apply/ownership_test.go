// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

func recordRef(name string, uid types.UID) metav1.OwnerReference {
	return ownerOf(&placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}})
}

func TestMayOwn(t *testing.T) {
	us, other := recordRef("us", "1"), recordRef("other", "2")
	stranger := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "set", UID: "3"}
	old := recordRef("us", "0")
	v1 := us
	v1.APIVersion = "placement.kubernetes-fleet.io/v1"
	never := placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.TakeOverNever}
	sharing := placementv1beta1.ApplyStrategy{AllowCoOwnership: true}

	cases := map[string]struct {
		owners       []metav1.OwnerReference
		strategy     placementv1beta1.ApplyStrategy
		unshared     bool
		incompatible bool
		wantReason   string // empty: it may
		wantMention  string
	}{
		"an object without owners":                                 {},
		"our own object":                                           {owners: []metav1.OwnerReference{us}},
		"our own object, with Never":                               {owners: []metav1.OwnerReference{us}, strategy: never},
		"our own object, named in another version":                 {owners: []metav1.OwnerReference{v1}, strategy: never},
		"an object of the AppliedWork before this":                 {owners: []metav1.OwnerReference{old}, strategy: never},
		"an object without owners, with Never":                     {strategy: never, wantReason: "NotTakenOver"},
		"an object of another Work, with Never":                    {owners: []metav1.OwnerReference{other}, strategy: never, wantReason: "NotTakenOver"},
		"an object of another Work":                                {owners: []metav1.OwnerReference{other}, wantReason: "FailedToTakeOver", wantMention: "other"},
		"our object that another Work got too":                     {owners: []metav1.OwnerReference{us, other}, wantReason: "ManifestApplyFailed", wantMention: "other"},
		"an object of a stranger":                                  {owners: []metav1.OwnerReference{stranger}, wantReason: "FailedToTakeOver", wantMention: "ReplicaSet"},
		"our object that a stranger owns too":                      {owners: []metav1.OwnerReference{us, stranger}, wantReason: "ManifestApplyFailed", wantMention: "set"},
		"an object of another Work, shared":                        {owners: []metav1.OwnerReference{other}, strategy: sharing},
		"an object of another Work, co-owned without its author":   {owners: []metav1.OwnerReference{other}, strategy: sharing, unshared: true, wantReason: "FailedToTakeOver", wantMention: "fleetgate.io/shared=Placements"},
		"an object that both shared before the annotation existed": {owners: []metav1.OwnerReference{us, other}, strategy: sharing, unshared: true},
		"an object of a stranger, not annotated as shared":         {owners: []metav1.OwnerReference{stranger}, strategy: sharing, unshared: true},
		"an object of a stranger, shared":                          {owners: []metav1.OwnerReference{stranger}, strategy: sharing},
		"an object of another Work that does not share it":         {owners: []metav1.OwnerReference{other}, strategy: sharing, incompatible: true, wantReason: "FailedToTakeOver", wantMention: "other"},
		"our object, and another Work that does not share ":        {owners: []metav1.OwnerReference{us, other}, strategy: sharing, incompatible: true, wantReason: "ManifestApplyFailed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := mayOwn(engine.OwnershipOf(tc.owners, us), tc.strategy, !tc.unshared, func(string) bool { return !tc.incompatible })
			if tc.wantReason == "" {
				if got != nil {
					t.Errorf("it is refused: %+v", *got)
				}
				return
			}
			if got == nil {
				t.Fatal("it is not refused")
			}
			if reasonOf(got.Reason) != tc.wantReason || !strings.Contains(got.Message, tc.wantMention) {
				t.Errorf("refused with %+v, want %s mentioning %q", *got, tc.wantReason, tc.wantMention)
			}
		})
	}
}
