// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func TestFitting_LargeObjectDoesNotBlockOthers(t *testing.T) {
	config := func(name, value string) placementv1beta1.Manifest {
		return manifest(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `","namespace":"n"},"data":{"k":"` + value + `"}}`)
	}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "now"}}
	before := []placementv1beta1.Manifest{config("grown", "small"), config("other", "a")}
	master := desiredResourceSnapshots(placement, split(before, sizeLimit), "hash", 0, Envelopes{})[0]
	hub := hubWith(t, master)
	r := &Reconciler{Client: hub, Live: hub, Snapshots: NewContents(hub, hub, Envelopes{})}
	latest := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: master.GetName()}}
	large := strings.Repeat("x", 200)
	now := []placementv1beta1.Manifest{config("grown", large), config("new", large), config("other", "b"), config("page", strings.Repeat(`\u003c`, 30))}

	fits, named, err := r.fitting(t.Context(), latest, now, 200)
	if err != nil {
		t.Fatal(err)
	}
	want := []placementv1beta1.Manifest{config("grown", "small"), config("other", "b"), now[3]}
	if !slices.EqualFunc(fits, want, func(a, b placementv1beta1.Manifest) bool { return string(a.Raw) == string(b.Raw) }) {
		t.Errorf("fits = %s", fits)
	}
	if len(named) != 2 || !strings.HasPrefix(named[0], `ConfigMap "n/grown" (`) || !strings.HasPrefix(named[1], `ConfigMap "n/new" (`) {
		t.Errorf("large = %v", named)
	}
	if _, err := r.Snapshots.Group(t.Context(), types.NamespacedName{Name: "gone"}); err == nil {
		t.Error("found a deleted group")
	}
}
