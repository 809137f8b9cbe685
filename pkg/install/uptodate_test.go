// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestStands(t *testing.T) {
	wanted := func() map[string]any {
		return map[string]any{
			"kind": "Service", "metadata": map[string]any{"name": "s", "labels": map[string]any{"a": "b"}},
			"spec": map[string]any{"type": "ExternalName", "ports": []any{map[string]any{"name": "api", "port": int64(1)}}, "sets": []any{"x"}, "none": nil},
		}
	}
	// The object as the API server stores it, with its defaults.
	current := func() map[string]any {
		return map[string]any{
			"kind": "Service", "metadata": map[string]any{"name": "s", "uid": "1", "labels": map[string]any{"a": "b", "others": "c"}},
			"spec": map[string]any{"type": "ExternalName", "affinity": "None", "ports": []any{map[string]any{"name": "api", "port": int64(1), "protocol": "TCP"}}, "sets": []any{"x"}},
		}
	}
	const applied = `{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:type":{},"f:sets":{"v:\"x\"":{}},"f:ports":{"k:{\"port\":1,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{}}}}}`
	spec := func(object map[string]any) map[string]any { return object["spec"].(map[string]any) }
	for name, test := range map[string]struct {
		// change modifies the current or the wanted object.
		change func(current, wanted map[string]any)
		fields string
		by     string
		as     metav1.ManagedFieldsOperationType
		want   bool
	}{
		"unchanged":     {want: true},
		"changed value": {change: func(current, _ map[string]any) { spec(current)["type"] = "ClusterIP" }},
		"new value":     {change: func(_, wanted map[string]any) { spec(wanted)["more"] = "1" }},
		"added item":    {change: func(current, _ map[string]any) { spec(current)["sets"] = []any{"x", "y"} }},
		"unwanted item": {
			change: func(current, wanted map[string]any) {
				spec(current)["sets"], spec(wanted)["sets"] = []any{"x"}, []any{}
			},
		},
		"unwanted field": {
			change: func(_, wanted map[string]any) { delete(spec(wanted), "type") },
		},
		"field applied with our name": {
			change: func(current, _ map[string]any) { spec(current)["exempt"] = "friend" },
			fields: `{"f:spec":{"f:exempt":{},"f:type":{}}}`,
		},
		"unwanted key": {
			fields: `{"f:spec":{"f:ports":{"k:{\"port\":2,\"protocol\":\"TCP\"}":{".":{}}}}}`,
		},
		"never applied":              {by: "kubectl"},
		"updated by us, not applied": {as: metav1.ManagedFieldsOperationUpdate},
		"unreadable managed fields":  {fields: `{"f:spec":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			is, desired := &unstructured.Unstructured{Object: current()}, &unstructured.Unstructured{Object: wanted()}
			if test.change != nil {
				test.change(is.Object, desired.Object)
			}
			entry := metav1.ManagedFieldsEntry{Manager: string(FieldOwner), Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(applied)}
			if test.fields != "" {
				entry.FieldsV1 = metav1.NewFieldsV1(test.fields)
			}
			if test.by != "" {
				entry.Manager = test.by
			}
			if test.as != "" {
				entry.Operation = test.as
			}
			is.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: string(FieldOwner), Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
				entry,
			})
			if got := isUpToDate(is, desired); got != test.want {
				t.Errorf("isUpToDate() = %v", got)
			}
		})
	}
}
