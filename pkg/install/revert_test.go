// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func bindingWith(spec map[string]any, fields ...metav1.ManagedFieldsEntry) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
		"metadata": map[string]any{"name": "b", "resourceVersion": "7"}, "spec": spec,
	}}
	object.SetManagedFields(fields)
	return object
}

func fieldsOf(manager, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestWritersOfSpec(t *testing.T) {
	applied := fieldsOf(string(FieldOwner), "", `{"f:spec":{"f:policyName":{}}}`)
	applied.Operation = metav1.ManagedFieldsOperationApply
	object := bindingWith(nil,
		applied,
		fieldsOf(string(FieldOwner), "", `{"f:spec":{"f:matchResources":{}}}`),
		fieldsOf("kube-apiserver", "status", `{"f:spec":{}}`),
		fieldsOf("labeller", "", `{"f:metadata":{"f:labels":{}}}`),
		fieldsOf("kubectl-edit", "", `{"f:spec":{"f:validationActions":{}}}`),
		fieldsOf("kubectl-edit", "", `{"f:spec":{}}`),
	)
	if diff := cmp.Diff([]string{string(FieldOwner), "kubectl-edit"}, writersOfSpec(object)); diff != "" {
		t.Errorf("writers (-want +got):\n%s", diff)
	}
}

func TestSpecPatch_KeepsDesiredContent(t *testing.T) {
	desired := map[string]any{"policyName": "b", "validationActions": []any{"Deny"}}
	current := bindingWith(map[string]any{
		"policyName": "b", "validationActions": []any{"Warn"}, "matchResources": map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}},
	})
	patch, err := specPatch(current, bindingWith(desired))
	if err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(current.Object)
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(after, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(desired, got["spec"]); diff != "" {
		t.Errorf("spec after the patch (-want +got):\n%s", diff)
	}
	var sent struct {
		Metadata map[string]any `json:"metadata"`
	}
	if err := json.Unmarshal(patch, &sent); err != nil || sent.Metadata["resourceVersion"] != "7" {
		t.Errorf("patch %s is valid for any version: %v", patch, err)
	}
}

// A condition that exempts somebody stayed when it was written with the name of our field manager.
func TestSaysMore_IgnoresFieldManagers(t *testing.T) {
	desired := func() map[string]any {
		return map[string]any{"policyName": "b", "validationActions": []any{"Deny"}, "matchConstraints": map[string]any{
			"resourceRules": []any{map[string]any{"resources": []any{"pods"}}},
		}}
	}
	for name, tc := range map[string]struct {
		change func(spec map[string]any)
		want   bool
	}{
		"nothing": {change: func(map[string]any) {}},
		"defaults": {change: func(spec map[string]any) {
			constraints := spec["matchConstraints"].(map[string]any)
			constraints["matchPolicy"], constraints["namespaceSelector"], constraints["objectSelector"] = "Equivalent", map[string]any{}, map[string]any{}
			constraints["resourceRules"].([]any)[0].(map[string]any)["scope"] = "*"
		}},
		"condition": {want: true, change: func(spec map[string]any) {
			spec["matchConditions"] = []any{map[string]any{"name": "not-me", "expression": "false"}}
		}},
		"selector": {want: true, change: func(spec map[string]any) {
			spec["matchConstraints"].(map[string]any)["objectSelector"] = map[string]any{"matchLabels": map[string]any{"a": "b"}}
		}},
		"other action": {want: true, change: func(spec map[string]any) { spec["validationActions"] = []any{"Deny", "Warn"} }},
		"weaker scope": {want: true, change: func(spec map[string]any) {
			spec["matchConstraints"].(map[string]any)["resourceRules"].([]any)[0].(map[string]any)["scope"] = "Cluster"
		}},
		"missing field, which applying restores": {change: func(spec map[string]any) { delete(spec, "validationActions") }},
	} {
		spec := desired()
		tc.change(spec)
		if got := hasUndesired(bindingWith(spec, fieldsOf(string(FieldOwner), "", `{"f:spec":{}}`)), bindingWith(desired())); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
