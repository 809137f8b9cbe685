// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// An annotation with the hash of the desired spec hid that somebody had changed the object.
func TestForget_IgnoresHashFromTheAPI(t *testing.T) {
	template := workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}}}}
	wanted, err := hash.JSON(&template)
	if err != nil {
		t.Fatal(err)
	}
	changed := &workv1.ManifestWork{Spec: *template.DeepCopy()}
	changed.Spec.Workload.Manifests[0].Raw = []byte(`{"a":"changed"}`)
	changed.Annotations = map[string]string{"fleetgate.io/spec-hash": wanted}
	for range 2 { // A cache may transform an object twice.
		kept, err := forget(changed)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := HashOf(kept.(*workv1.ManifestWork)); err != nil || got == wanted || got == "" {
			t.Fatalf("the hash is %q, %v: that of the annotation is %q", got, err, wanted)
		}
	}
	if len(validation.IsQualifiedName(specHashKey)) == 0 {
		t.Errorf("an API server would store annotation %s, and anybody could write it", specHashKey)
	}
}
