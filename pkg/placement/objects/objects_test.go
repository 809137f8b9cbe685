// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var ours = &metav1.ObjectMeta{UID: "ours"}

func owned(by types.UID) []metav1.OwnerReference {
	return []metav1.OwnerReference{{UID: by, Controller: new(true)}}
}

func policySnapshot(name string, labels map[string]string) placementv1beta1.PolicySnapshotObject {
	return &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owned("ours")}}
}

func resourceSnapshot(name string, labels, annotations map[string]string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations, OwnerReferences: owned("ours")}}
}

func TestLatestPolicySnapshot(t *testing.T) {
	latest, not := map[string]string{placementv1beta1.IsLatestSnapshotLabel: "true"}, map[string]string{placementv1beta1.IsLatestSnapshotLabel: "false"}
	cases := map[string]struct {
		snapshots []placementv1beta1.PolicySnapshotObject
		want      string
	}{
		"none":                            {},
		"no label":                        {snapshots: []placementv1beta1.PolicySnapshotObject{policySnapshot("a", not), policySnapshot("b", nil)}},
		"two labels during a replacement": {[]placementv1beta1.PolicySnapshotObject{policySnapshot("a", latest), policySnapshot("b", latest)}, "b"},
		"next snapshot without the label": {[]placementv1beta1.PolicySnapshotObject{policySnapshot("a", latest), policySnapshot("b", not)}, "a"},
	}
	former := policySnapshot("b", latest)
	former.SetOwnerReferences(owned("former"))
	cases["of a former placement of the same name"] = struct {
		snapshots []placementv1beta1.PolicySnapshotObject
		want      string
	}{[]placementv1beta1.PolicySnapshotObject{policySnapshot("a", latest), former}, "a"}
	for name, tc := range cases {
		got := ""
		if s := LatestPolicySnapshot(ours, tc.snapshots); s != nil {
			got = s.GetName()
		}
		if got != tc.want {
			t.Errorf("%s: LatestPolicySnapshot() = %q, want %q", name, got, tc.want)
		}
	}
}

func TestLatestResourceSnapshot_IsMasterOfItsGroup(t *testing.T) {
	latest, master := map[string]string{placementv1beta1.IsLatestSnapshotLabel: "true"}, map[string]string{placementv1beta1.ResourceHashAnnotation: "x"}
	snapshots := []*metav1.PartialObjectMetadata{
		resourceSnapshot("old", nil, master), resourceSnapshot("master", latest, master), resourceSnapshot("second", latest, nil),
	}
	if got := LatestResourceSnapshot(ours, snapshots); got == nil || got.Name != "master" {
		t.Errorf("LatestResourceSnapshot() = %v", got)
	}
	if got := LatestResourceSnapshot(ours, snapshots[2:]); got != nil {
		t.Errorf("LatestResourceSnapshot() = %v, want none for a group without a master", got)
	}
}

func TestIndex_InvalidIsMinusOne(t *testing.T) {
	for label, want := range map[string]int{"0": 0, "12": 12, "": -1, "-1": -1, "x": -1, "99999999999999999999": -1} {
		if got := PolicyIndex(policySnapshot("a", map[string]string{placementv1beta1.PolicyIndexLabel: label})); got != want {
			t.Errorf("index %q is %d, want %d", label, got, want)
		}
	}
	if got := ResourceIndex(resourceSnapshot("a", nil, nil)); got != -1 {
		t.Errorf("missing index = %d", got)
	}
}

func TestKeyOf(t *testing.T) {
	b := NewBinding("team")
	b.SetNamespace("team")
	if key, ok := KeyOf(b); ok {
		t.Errorf("KeyOf() of a binding without a label = %v", key)
	}
	b.SetLabels(map[string]string{placementv1beta1.ParentPlacementLabel: "app"})
	if key, ok := KeyOf(b); !ok || key != (types.NamespacedName{Namespace: "team", Name: "app"}) {
		t.Errorf("KeyOf() = %v, %t", key, ok)
	}
}

func TestWanted(t *testing.T) {
	cases := map[string]struct {
		policy *placementv1beta1.PlacementPolicy
		n      int
		known  bool
	}{
		"no policy selects all":  {},
		"PickAll selects all":    {policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAll}},
		"PickFixed counts names": {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"a", "b"}}, 2, true},
		"PickN with a number":    {&placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: ptr.To(int32(3))}, 3, true},
		"PickN without a number": {policy: &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN}},
	}
	for name, tc := range cases {
		if n, known := Wanted(tc.policy); n != tc.n || known != tc.known {
			t.Errorf("%s: Wanted() = %d, %t", name, n, known)
		}
	}
}

func TestPredicates_PassOnlyTheirChange(t *testing.T) {
	object := func(label, paused string) client.Object {
		return resourceSnapshot("a", map[string]string{"x": label}, map[string]string{placementv1beta1.PausedAnnotation: paused})
	}
	was := object("1", "")
	for name, tc := range map[string]struct {
		is                       client.Object
		relabelled, pauseChanged bool
	}{
		"nothing":       {is: object("1", "")},
		"changed label": {object("2", ""), true, false},
		"paused":        {object("1", "true"), false, true},
		"other value":   {is: object("1", "yes")},
	} {
		e := event.UpdateEvent{ObjectOld: was, ObjectNew: tc.is}
		if got := Relabelled().Update(e); got != tc.relabelled {
			t.Errorf("%s: Relabelled() = %t", name, got)
		}
		if got := PauseChanged().Update(e); got != tc.pauseChanged {
			t.Errorf("%s: PauseChanged() = %t", name, got)
		}
	}
}

// lists returns one placement of each scope.
type lists struct{ client.Reader }

func (lists) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *placementv1beta1.ClusterResourcePlacementList:
		list.Items = []placementv1beta1.ClusterResourcePlacement{{ObjectMeta: metav1.ObjectMeta{Name: "wide"}}}
	case *placementv1beta1.ResourcePlacementList:
		list.Items = []placementv1beta1.ResourcePlacement{{ObjectMeta: metav1.ObjectMeta{Name: "narrow", Namespace: "team"}}}
	}
	return nil
}

func TestEachPlacement_HasBothScopes(t *testing.T) {
	var names []string
	EachPlacement(t.Context(), lists{}, func(p placementv1beta1.PlacementObject) { names = append(names, p.GetNamespace()+"/"+p.GetName()) })
	if want := []string{"/wide", "team/narrow"}; !slices.Equal(names, want) {
		t.Errorf("EachPlacement() calls %v, want %v", names, want)
	}
}
