// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func crdNamed(name string, schema apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = name
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: "v1beta1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
	}}
	return crd
}

func TestOlderVersionDoesNotChangeTheStoredOne(t *testing.T) {
	envelopes := []apiextensionsv1.JSON{{Raw: []byte(`"ConfigMap"`)}, {Raw: []byte(`"ResourceEnvelope"`)}}
	crd := crdNamed("works.placement.kubernetes-fleet.io", apiextensionsv1.JSONSchemaProps{
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"envelope": {Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"type": {Enum: envelopes, Default: &apiextensionsv1.JSON{Raw: []byte(`"ConfigMap"`)}},
			}},
		},
	})

	older := olderVersion(crd, "v1")

	typeOf := func(v apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.JSONSchemaProps {
		return v.Schema.OpenAPIV3Schema.Properties["envelope"].Properties["type"]
	}
	if got := typeOf(older); len(got.Enum) != 1 || string(got.Enum[0].Raw) != `"ResourceEnvelope"` || got.Default != nil {
		t.Errorf("v1 has %v, want ResourceEnvelope only and no default", got)
	}
	if got := typeOf(crd.Spec.Versions[0]); len(got.Enum) != 2 || string(got.Enum[0].Raw) != `"ConfigMap"` || got.Default == nil {
		t.Errorf("v1beta1 has become %v", got)
	}
	if older.Storage || !older.Served || older.Name != "v1" {
		t.Errorf("got version %q, storage %v, served %v", older.Name, older.Storage, older.Served)
	}
}

func TestTableRowWithoutCRDIsAnError(t *testing.T) {
	err := addOlderVersions([]*apiextensionsv1.CustomResourceDefinition{
		crdNamed("works.placement.kubernetes-fleet.io", apiextensionsv1.JSONSchemaProps{}),
	})
	if err == nil || !strings.Contains(err.Error(), "memberclusters.cluster.kubernetes-fleet.io") {
		t.Errorf("got %v, want an error that names the row", err)
	}
}

func TestEmptyInputKeepsTheOutput(t *testing.T) {
	to := t.TempDir()
	kept := filepath.Join(to, "kept.yaml")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.TempDir(), to); err == nil {
		t.Error("got no error for a folder without CRDs")
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("the output was removed: %v", err)
	}
}

func TestBoundQuantities_RejectsBillionDigits(t *testing.T) {
	quantity := apiextensionsv1.JSONSchemaProps{Pattern: anyQuantity}
	crd := crdNamed("a", apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"one":  quantity,
		"many": {AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &quantity}},
		"text": {Pattern: "^a$"},
	}})
	boundQuantities(crd)
	got := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	one := got["one"]
	if got["text"].Pattern != "^a$" || len(got["text"].AllOf) != 0 || !equality.Semantic.DeepEqual(*got["many"].AdditionalProperties.Schema, one) {
		t.Errorf("the patterns are %+v", got)
	}
	for text, want := range map[string]bool{
		"4": true, "-1.5Gi": true, "+250m": true, ".5": true, "4.": true, "1e3": true, "1E-9": true, "1Ei": true, "1E": true, "9e+308": true, strings.Repeat("9", 32): true,
		"1e-999999999": false, "1E+0001": false, "1e1.5": false, strings.Repeat("9", 33): false, "." + strings.Repeat("1", 33): false, "1e": false, "": false, "v1": false,
	} {
		if fits(t, &one, text) != want {
			t.Errorf("that %q fits is %v", text, !want)
		}
	}
}

// TestShippedCRDs_BoundQuantities also fails when a new generator writes quantities with another
// pattern.
func TestShippedCRDs_BoundQuantities(t *testing.T) {
	crds, err := read(filepath.Join("..", "..", "pkg", "apis", "crds"))
	if err != nil {
		t.Fatal(err)
	}
	bounded := 0
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			walk(version.Schema.OpenAPIV3Schema, "", func(field string, schema *apiextensionsv1.JSONSchemaProps) {
				if !schema.XIntOrString || schema.Pattern == "" || !fits(t, schema, "1Gi") {
					return
				} else if bounded++; fits(t, schema, "1e-999999999") {
					t.Errorf("%s, %s: %s takes any quantity", crd.Name, version.Name, field)
				}
			})
		}
	}
	if bounded == 0 {
		t.Error("no definition has a quantity: this proves nothing")
	}
}

// fits reports whether text matches all patterns of a schema.
func fits(t *testing.T, schema *apiextensionsv1.JSONSchemaProps, text string) bool {
	t.Helper()
	for _, pattern := range append([]apiextensionsv1.JSONSchemaProps{*schema}, schema.AllOf...) {
		if matches, err := regexp.MatchString(pattern.Pattern, text); err != nil || !matches {
			return false
		}
	}
	return true
}
