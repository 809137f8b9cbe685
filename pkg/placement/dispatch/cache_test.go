// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// An annotation with the hash of the desired manifests hid that somebody had changed the object.
func TestForget_IgnoresHashFromTheAPI(t *testing.T) {
	template := &placementv1beta1.Work{}
	template.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}}
	wanted, err := manifestsHash(template)
	if err != nil {
		t.Fatal(err)
	}
	changed := template.DeepCopy()
	changed.Spec.Workload.Manifests[0].Raw = []byte(`{"a":"changed"}`)
	changed.Annotations = map[string]string{"fleetgate.io/manifests-hash": wanted}
	for range 2 { // A cache may transform an object twice.
		kept, err := forget(changed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := manifestsHash(kept.(*placementv1beta1.Work)); err != nil || got == wanted || got == "" {
			t.Fatalf("hash = %q, %v; the annotation has %q", got, err, wanted)
		}
	}
	if len(validation.IsQualifiedName(manifestsHashKey)) == 0 {
		t.Errorf("annotation %s is valid for an API server: anybody could write it", manifestsHashKey)
	}
}
