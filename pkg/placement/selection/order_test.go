// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSort(t *testing.T) {
	want := []string{
		"Namespace//a", "ServiceAccount/a/z", "Secret/a/z", "ConfigMap/a/a", "ConfigMap/a/b", "ConfigMap/b/a",
		"Service/a/a", "Deployment/a/a", "ValidatingWebhookConfiguration//a", "Alpha//a", "Beta//a",
	}
	var objects []*unstructured.Unstructured
	for _, text := range []string{
		"{apiVersion: example.com/v1, kind: Beta, metadata: {name: a}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: a, name: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: b, name: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: b}}",
		"{apiVersion: example.com/v1, kind: Alpha, metadata: {name: a}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: a, name: a}}",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}}",
		"{apiVersion: v1, kind: Service, metadata: {namespace: a, name: a}}",
		"{apiVersion: v1, kind: Secret, metadata: {namespace: a, name: z}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: a, name: z}}",
		"{apiVersion: v1, kind: Namespace, metadata: {name: a}}",
	} {
		objects = append(objects, parse(t, text))
	}
	Sort(objects)
	var got []string
	for _, o := range objects {
		got = append(got, o.GetKind()+"/"+o.GetNamespace()+"/"+o.GetName())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Sort() (-want +got):\n%s", diff)
	}
}
