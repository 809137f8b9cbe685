// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/metadata/fake"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

func TestCollectLeftovers_FindsThoseOfItsHub(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(apiVersion, kind, namespace, name, from string) runtime.Object {
		o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if from != "" {
			o.Annotations = map[string]string{placementv1beta1.RetainedFromAnnotation: from}
		}
		return o
	}
	member := fake.NewSimpleMetadataClient(scheme,
		object("v1", "Namespace", "", "shop", "ClusterResourcePlacement shop"),
		object("v1", "Namespace", "", "other", ""),
		object("v1", "PersistentVolumeClaim", "shop", "data", "ClusterResourcePlacement shop"),
		object("v1", "PersistentVolumeClaim", "team", "data", "ResourcePlacement team/web of hub east"))
	for hub, want := range map[string]retention.Leftovers{
		"":     {"ClusterResourcePlacement shop": {Objects: 2, Examples: []string{"Namespace shop", "PersistentVolumeClaim shop/data"}}},
		"east": {"ResourcePlacement team/web": {Objects: 1, Examples: []string{"PersistentVolumeClaim team/data"}}},
		"west": {},
	} {
		got, err := collectLeftovers(t.Context(), member, hub)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("hub %q (-want +got):\n%s", hub, diff)
		}
	}
}
