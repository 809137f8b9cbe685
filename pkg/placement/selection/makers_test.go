// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWithoutMade(t *testing.T) {
	kind := func(group, name string) Kind {
		return Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}}
	}
	certificates, external, sealed := kind("cert-manager.io", "Certificate"), kind("external-secrets.io", "ExternalSecret"), kind("bitnami.com", "SealedSecret")
	secret := func(namespace, name, annotation, value string, managed ...metav1.ManagedFieldsEntry) candidate {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ManagedFields: managed}}
		if annotation != "" {
			object.Annotations = map[string]string{annotation: value}
		}
		for range 2 { // as an informer may do
			if _, err := trim(object); err != nil {
				t.Fatal(err)
			}
		}
		return candidateOf(kind("", "Secret"), object)
	}
	always := secret("a", "web", "cert-manager.io/certificate-name", "web")
	always.maker = maker{} // as with the annotation
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1("{" + fields + "}")}
	}
	operator := entry("externalsecrets.external-secrets.io/db", `"f:data":{"f:a":{}}`)
	user := entry("kubectl", `"f:data":{"f:b":{}}`)
	label := entry("kubectl-label", `"f:metadata":{"f:labels":{"f:b":{}}}`)
	kept := []candidate{
		{kind: certificates, namespace: "a", name: "web"}, {kind: external, namespace: "a", name: "db"}, {kind: sealed, namespace: "a", name: "key"},
		{kind: kind("networking.k8s.io", "Ingress"), namespace: "a", name: "shop", uid: "1"},
		secret("a", "other", "cert-manager.io/certificate-name", "other"), secret("b", "web", "cert-manager.io/certificate-name", "web"), always,
		secret("a", "mixed", "", "", operator, user), secret("b", "db", "", "", operator),
		secret("a", "key", "", ""), secret("a", "not-sealed", "sealedsecrets.bitnami.com/skip-set-owner-references", "true"),
		secret("a", "of-nobody", "cert-manager.io/certificate-name", "of-nobody"),
	}
	made := []candidate{
		secret("a", "web", "cert-manager.io/certificate-name", "web"), secret("a", "db", "", "", operator, label),
		secret("a", "key", "sealedsecrets.bitnami.com/skip-set-owner-references", "true"),
		secret("a", "shop-tls", "cert-manager.io/certificate-name", "shop-tls"),
		{kind: certificates, namespace: "a", name: "shop-tls", absent: true, owners: "1"},
		{kind: certificates, namespace: "a", name: "of-nobody", absent: true, owners: "2", uid: "3"},
	}
	all := append(slices.Clone(kept), made...)
	got := withoutMade(all, makersOf(all))
	if !slices.Equal(got, kept) {
		t.Errorf("candidates are %v, want %v", got, kept)
	}
}

func TestCutMerged(t *testing.T) {
	const secret = `
apiVersion: v1
kind: Secret
metadata:
  namespace: a
  name: app
  managedFields:
  - {manager: externalsecrets.external-secrets.io/db, operation: Update, fieldsV1: {"f:data": {"f:password": {}, "f:shared": {}}}}
  - {manager: externalsecrets.external-secrets.io/other, operation: Update, fieldsV1: {"f:data": {"f:token": {}}}}
  - {manager: kubectl, operation: Update, fieldsV1: {"f:data": {"f:user": {}, "f:shared": {}}}}
data: {password: YQ==, shared: YQ==, token: YQ==, user: YQ==}
`
	for namespace, want := range map[string][]string{"a": {"shared", "token", "user"}, "b": {"password", "shared", "token", "user"}} {
		object := parse(t, secret)
		cutMerged(object, map[made]bool{{namespace, maker{externalSecretKind, "db"}}: true})
		data, _, _ := unstructured.NestedMap(object.Object, "data")
		if got := slices.Sorted(maps.Keys(data)); !slices.Equal(got, want) {
			t.Errorf("with an ExternalSecret in namespace %s the keys are %v, want %v", namespace, got, want)
		}
	}
}

func TestWithoutAliases(t *testing.T) {
	role := func(group, uid string) candidate {
		return candidate{kind: Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Role"}}, name: "r", uid: uid}
	}
	kept := []candidate{role("rbac.authorization.k8s.io", "1"), role("networking.k8s.io", "2"), role("a.example.org", "3"), role("x", ""), role("y", "")}
	got := withoutAliases(append([]candidate{role("authorization.openshift.io", "1"), role("extensions", "2")}, append(slices.Clone(kept), role("b.example.org", "3"))...))
	if !slices.Equal(got, kept) {
		t.Errorf("candidates are %v, want %v", got, kept)
	}
}
