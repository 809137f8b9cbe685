// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func ownedBy(manager string, operation metav1.ManagedFieldsOperationType, version, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: version, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestLastApplied_OfAnObjectThatWasAppliedByTheServerIsWhatWeHold(t *testing.T) {
	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"a":"1","theirs":"1"},"annotations":{"theirs":"1"},
		"ownerReferences":[{"uid":"u"}],"finalizers":["x","y"]},
		"spec":{"replicas":3,"paused":true,"template":{"spec":{"containers":[{"name":"side","image":"s"},{"name":"app","image":"a","tty":true}]}}}}`), live); err != nil {
		t.Fatal(err)
	}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		ownedBy("us", metav1.ManagedFieldsOperationApply, "apps/v1", `{"f:metadata":{"f:labels":{"f:a":{}},"f:annotations":{".":{}},"f:finalizers":{"v:\"x\"":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},
			"f:spec":{"f:paused":{},"f:gone":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`),
		ownedBy("us", metav1.ManagedFieldsOperationUpdate, "apps/v1", `{"f:spec":{"f:replicas":{}}}`),
		ownedBy("others", metav1.ManagedFieldsOperationApply, "apps/v1", `{"f:spec":{"f:replicas":{}}}`),
		ownedBy("us", metav1.ManagedFieldsOperationApply, "apps/v1beta1", `{"f:spec":{"f:replicas":{}}}`),
	})
	e := &Engine{Dialect: ours()}
	it := Item{object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}}
	got := map[string]any{}
	if err := json.Unmarshal(e.lastApplied(it, live), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{}, "labels": map[string]any{"a": "1"}, "finalizers": []any{"x"}},
		"spec": map[string]any{"paused": true, "template": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": "a"}}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the last manifest (-want +got):\n%s", diff)
	}
}

func TestLastApplied_WithoutTheAnnotationIsTheDataThatWeWrote(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "c", "labels": map[string]any{"a": "1"}}, "data": map[string]any{"a": "1", "theirs": "1"}}}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		ownedBy("us", metav1.ManagedFieldsOperationUpdate, "v1", `{"f:data":{".":{},"f:a":{}},"f:metadata":{"f:labels":{"f:a":{}}}}`)})
	e := &Engine{Dialect: ours()}
	if got, want := string(e.lastApplied(Item{object: live}, live)), `{"data":{"a":"1"}}`; got != want {
		t.Errorf("the last manifest is %s, want %s", got, want)
	}
}

func TestLastApplied_ReadsStringDataThatAnEarlierVersionLeft(t *testing.T) {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	live.SetAnnotations(map[string]string{ours().AppliedAnnotation: `{"kind":"Secret","stringData":{"revoked":""}}`})
	e := &Engine{Dialect: ours()}
	if got, want := string(e.lastApplied(Item{object: live}, live)), `{"data":{"revoked":""},"kind":"Secret"}`; got != want {
		t.Errorf("the last manifest is %s, want %s", got, want)
	}
}
