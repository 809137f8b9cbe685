// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// maker is an object whose controller writes another one of its namespace.
type maker struct {
	kind schema.GroupKind
	name string
}

// made is a maker in a namespace.
type made struct {
	namespace string
	maker
}

var (
	certificateKind    = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	externalSecretKind = schema.GroupKind{Group: "external-secrets.io", Kind: "ExternalSecret"}
	sealedSecretKind   = schema.GroupKind{Group: "bitnami.com", Kind: "SealedSecret"}
	makers             = map[schema.GroupKind]bool{certificateKind: true, externalSecretKind: true, sealedSecretKind: true}
)

// makerOf returns the maker of a Secret as far as its trimmed metadata shows it.
func makerOf(secret *metav1.PartialObjectMetadata) maker {
	switch annotations := secret.Annotations; {
	case annotations[annotationCertificate] != "":
		return maker{certificateKind, annotations[annotationCertificate]}
	case annotations[writtenFor] != "":
		return maker{externalSecretKind, annotations[writtenFor]}
	case annotations[annotationUnsealed] == "true":
		return maker{sealedSecretKind, secret.Name}
	}
	return maker{}
}

// externalSecrets is the beginning of the field managers of the External Secrets Operator; the name of the
// ExternalSecret follows.
const externalSecrets = "externalsecrets.external-secrets.io/"

// externalSecretOf returns the name of the ExternalSecret for which all content was written; empty if there is none.
func externalSecretOf(entries []metav1.ManagedFieldsEntry) (name string) {
	if !isMerged(entries) {
		return ""
	}
	for _, writer := range writersOf(entries) {
		if !writer.hasContent() {
			continue
		}
		of, is := strings.CutPrefix(writer.manager, externalSecrets)
		if !is || name != "" && name != of {
			return ""
		}
		name = of
	}
	return name
}

func isMerged(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return strings.HasPrefix(entry.Manager, externalSecrets) })
}

// cutMerged removes from a Secret the keys that only the controllers of these makers wrote into it.
func cutMerged(secret *unstructured.Unstructured, by map[made]bool) {
	if secret.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) || !isMerged(secret.GetManagedFields()) ||
		secret.GetAnnotations()[placementv1beta1.PlaceAnnotation] == placementv1beta1.PlaceAlways {
		return
	}
	theirs, others := &fieldpath.Set{}, &fieldpath.Set{}
	for _, writer := range writersOf(secret.GetManagedFields()) {
		if name, is := strings.CutPrefix(writer.manager, externalSecrets); is && by[made{secret.GetNamespace(), maker{externalSecretKind, name}}] {
			theirs = theirs.Union(writer.fields)
		} else {
			others = others.Union(writer.fields)
		}
	}
	data := "data"
	theirs.Difference(others).WithPrefix(fieldpath.PathElement{FieldName: &data}).Members.Iterate(func(key fieldpath.PathElement) {
		if key.FieldName != nil {
			unstructured.RemoveNestedField(secret.Object, data, *key.FieldName)
		}
	})
}

// makersOf returns the makers that members have too: selected ones, and those that a selected owner has, as
// cert-manager makes a Certificate for an Ingress.
func makersOf(candidates []candidate) map[made]bool {
	uids, found := map[string]bool{}, map[made]bool{}
	for _, c := range candidates {
		uids[c.uid] = !c.absent && c.uid != ""
	}
	for _, c := range candidates {
		if makers[c.kind.GroupKind()] && (!c.absent || slices.ContainsFunc(strings.Split(c.owners, ","), func(owner string) bool { return uids[owner] })) {
			found[made{c.namespace, maker{c.kind.GroupKind(), c.name}}] = true
		}
	}
	return found
}

// withoutMade drops the Secrets of these makers, and the absent candidates. The controller of a maker on a member writes
// its own Secret, and writes it again whenever it is overwritten.
func withoutMade(candidates []candidate, by map[made]bool) []candidate {
	return slices.DeleteFunc(candidates, func(c candidate) bool { return c.absent || by[made{c.namespace, c.maker}] })
}
