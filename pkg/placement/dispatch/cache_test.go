// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// TestForget_BelievesNoHashFromTheAPI: an annotation with the hash of what was wanted hid that
// somebody had changed the object.
func TestForget_BelievesNoHashFromTheAPI(t *testing.T) {
	template := &placementv1beta1.Work{}
	template.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}}
	wanted, err := manifestsHash(template)
	if err != nil {
		t.Fatal(err)
	}
	changed := template.DeepCopy()
	changed.Spec.Workload.Manifests[0].Raw = []byte(`{"a":"changed"}`)
	changed.Annotations = map[string]string{"fleetgate.io/manifests-hash": wanted}
	for range 2 { // A cache may hand on what it has handed on before.
		kept, err := forget(changed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := manifestsHash(kept.(*placementv1beta1.Work)); err != nil || got == wanted || got == "" {
			t.Fatalf("the hash is %q, %v: that of the annotation is %q", got, err, wanted)
		}
	}
	if len(validation.IsQualifiedName(manifestsHashKey)) == 0 {
		t.Errorf("an API server would store annotation %s, and anybody could write it", manifestsHashKey)
	}
}
