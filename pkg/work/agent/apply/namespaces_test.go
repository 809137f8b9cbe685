// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const pathNamespace = "/api/v1/namespaces/ns"

func (b *bed) reasonOf(ordinal int) string {
	b.Helper()
	for _, m := range b.work("work").Status.ManifestConditions {
		if c := meta.FindStatusCondition(m.Conditions, placementv1beta1.ConditionApplied); m.Identifier.Ordinal == ordinal && c != nil {
			return c.Reason
		}
	}
	return ""
}

func TestReconcile_WritesIntoExistingNamespaceOnlyWithLabel(t *testing.T) {
	b := newBed(t, Options{OnlyLabelledNamespaces: true}, newWork("work", nil, manifestNamespace, manifestA("1")))
	b.meddle(pathNamespace, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`)
	b.look("work")
	for ordinal := range 2 {
		if got := b.reasonOf(ordinal); got != placementv1beta1.ReasonReserved {
			t.Errorf("manifest %d: reason %q, want %q", ordinal, got, placementv1beta1.ReasonReserved)
		}
	}
	if b.member.objects[pathA] != nil || len(b.member.objects[pathNamespace].GetOwnerReferences()) > 0 {
		t.Fatal("the namespace of others was written")
	}

	b.meddle(pathNamespace, `{"metadata":{"labels":{"fleetgate.io/enter":"true"}}}`)
	b.look("work")
	if b.member.objects[pathA] == nil {
		t.Errorf("the object is not there after the label was set: %s", b.reasonOf(1))
	}
}

func TestReconcile_WritesIntoNamespaceThatItCreated(t *testing.T) {
	b := newBed(t, Options{OnlyLabelledNamespaces: true}, newWork("work", nil, manifestNamespace, manifestA("1")))
	b.look("work")
	b.change("work", func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = raw(manifestNamespace, manifestA("2")) })
	b.look("work")
	if live := b.member.objects[pathA]; live == nil || live.Object["data"].(map[string]any)["a"] != "2" {
		t.Errorf("got %v, reason %q", live, b.reasonOf(1))
	}
}
