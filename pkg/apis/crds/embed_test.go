// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package crds

import (
	"encoding/json"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func all(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds, err := All()
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) == 0 {
		t.Fatal("no CRDs are embedded")
	}
	return crds
}

// kubectl apply stores a copy of the object in an annotation. All annotations of an object can have
// 256 KiB.
func TestCRDs_FitIntoAnAnnotation(t *testing.T) {
	for _, crd := range all(t) {
		encoded, err := json.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		if len(encoded) > 250<<10 {
			t.Errorf("%s has %d KiB", crd.Name, len(encoded)>>10)
		}
	}
}

func TestCRDs_HaveTheSameFieldsInEveryServedVersion(t *testing.T) {
	for _, crd := range all(t) {
		if crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter {
			t.Errorf("%s has conversion %s", crd.Name, crd.Spec.Conversion.Strategy)
		}
		var stored, other map[string]bool
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				stored = fields(version.Schema.OpenAPIV3Schema)
			}
		}
		for _, version := range crd.Spec.Versions {
			if !version.Served {
				continue // The gateway serves it with a conversion.
			}
			other = fields(version.Schema.OpenAPIV3Schema)
			for field := range stored {
				if !other[field] {
					t.Errorf("%s %s lacks %s", crd.Name, version.Name, field)
				}
			}
			if len(other) != len(stored) {
				t.Errorf("%s %s has %d fields, the stored version %d", crd.Name, version.Name, len(other), len(stored))
			}
		}
	}
}

// fields returns the paths of all fields of a schema.
func fields(schema *apiextensionsv1.JSONSchemaProps) map[string]bool {
	paths := map[string]bool{}
	var walk func(path string, schema *apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		paths[path] = true
		for name, property := range schema.Properties {
			walk(path+"."+name, &property)
		}
		if schema.Items != nil {
			walk(path+"[]", schema.Items.Schema)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			walk(path+"{}", schema.AdditionalProperties.Schema)
		}
	}
	walk("", schema)
	return paths
}

func TestForHubAndForMember_ReturnTheirCRDs(t *testing.T) {
	names := func(crds []*apiextensionsv1.CustomResourceDefinition, err error) []string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, crd := range crds {
			names = append(names, crd.Name)
		}
		return names
	}
	hub := names(ForHub("placement.kubernetes-fleet.io"))
	if len(hub) != 24 || slices.Contains(hub, AppliedWorks) {
		t.Errorf("ForHub(placement) = %d CRDs %v, want 24 without %s", len(hub), hub, AppliedWorks)
	}
	if member := names(ForMember("placement.kubernetes-fleet.io")); !slices.Equal(member, []string{AppliedWorks}) {
		t.Errorf("ForMember(placement) = %v, want %s only", member, AppliedWorks)
	}
	const works = "work.open-cluster-management.io"
	if hub := names(ForHub(works)); !slices.Equal(hub, []string{"manifestworkreplicasets." + works, "manifestworks." + works}) {
		t.Errorf("ForHub(work) = %v", hub)
	}
	if member := names(ForMember(works)); !slices.Equal(member, []string{AppliedManifestWorks}) {
		t.Errorf("ForMember(work) = %v, want %s only", member, AppliedManifestWorks)
	}
	const clusters = "cluster.open-cluster-management.io"
	if hub := names(ForHub(clusters)); !slices.Contains(hub, "managedclusters."+clusters) || slices.Contains(hub, ClusterClaims) {
		t.Errorf("ForHub(cluster) = %v, want managedclusters and not %s", hub, ClusterClaims)
	}
	if member := names(ForMember(clusters)); !slices.Equal(member, []string{ClusterClaims}) {
		t.Errorf("ForMember(cluster) = %v, want %s only", member, ClusterClaims)
	}
	if none := append(names(ForHub()), names(ForMember())...); len(none) > 0 {
		t.Errorf("CRDs without a group: %v", none)
	}
}
