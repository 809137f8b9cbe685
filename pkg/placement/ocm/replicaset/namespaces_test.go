// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
)

func TestWithWrittenNamespaces_RemovesThoseOfClusterScopedKindsOfTheHub(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	texts := []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a"}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"namespace":"shop","name":"a"}}`,
		`{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`,
		`{"apiVersion":"example.org/v1","kind":"Unserved","metadata":{"namespace":"shop","name":"a"}}`,
		`{"apiVersion":`,
	}
	for _, text := range texts {
		set.Spec.ManifestWorkTemplate.Workload.Manifests = append(set.Spec.ManifestWorkTemplate.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	before := set.DeepCopy()
	written, err := withWrittenNamespaces(set, mapper)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, set); diff != "" {
		t.Errorf("the set of the cache has changed (-before +after):\n%s", diff)
	}
	texts[1] = `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}`
	for i, m := range written.Spec.ManifestWorkTemplate.Workload.Manifests {
		if string(m.Raw) != texts[i] {
			t.Errorf("manifest %d is %s, want %s", i, m.Raw, texts[i])
		}
	}
}
