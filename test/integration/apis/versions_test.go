// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"fleetgate.io/fleetgate/pkg/apis/crds"
)

// A version that lacked a field of another would drop it: conversion is None.
var _ = Describe("Every served version", func() {
	all, err := crds.All()
	if err != nil {
		panic(err)
	}
	for _, crd := range all {
		It("keeps every field of "+crd.Spec.Names.Kind+"."+crd.Spec.Group, func(ctx SpecContext) {
			stored, others := versionsOf(crd)
			written := map[string]bool{}
			for i, object := range objectsOf(crd, stored) {
				object.SetName(fmt.Sprintf("every-field-%d", i))
				maps.Copy(written, valuePaths(content(object)))
				before := store(ctx, crd, stored, object)
				for _, version := range others {
					annotateThrough(ctx, crd, version, object.GetName())
					after := get(ctx, crd, stored.Name, object.GetName())
					Expect(cmp.Diff(content(before), content(after))).To(BeEmpty(), "lost (-) by writing through %s", version.Name)
				}
			}
			Expect(missing(crd, stored, written)).To(BeEmpty(), "fields that no object of this test sets")
		})
	}
})

func versionsOf(crd *apiextensionsv1.CustomResourceDefinition) (stored apiextensionsv1.CustomResourceDefinitionVersion, others []apiextensionsv1.CustomResourceDefinitionVersion) {
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			stored = version
		} else if version.Served {
			others = append(others, version)
		}
	}
	return stored, others
}

// store writes an object and its status, and returns what was stored: all that
// was written, and nothing else, since every field is set or must not be.
func store(ctx SpecContext, crd *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion, object *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	resource := resourceOf(crd, version.Name)
	created, err := resource.Create(ctx, object.DeepCopy(), metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	Expect(err).NotTo(HaveOccurred())
	if status, ok := object.Object["status"]; ok && hasStatus(version) {
		created.Object["status"] = runtime.DeepCopyJSONValue(status)
		_, err = resource.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		Expect(err).NotTo(HaveOccurred())
	}
	stored := get(ctx, crd, version.Name, object.GetName())
	Expect(cmp.Diff(content(object), content(stored))).To(BeEmpty(), "lost (-) when stored")
	return stored
}

// annotateThrough writes an object through a version in each way that clients
// have: as a patch, as a whole, and its status as a whole.
func annotateThrough(ctx SpecContext, crd *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion, name string) {
	GinkgoHelper()
	resource := resourceOf(crd, version.Name)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"patched-through":%q}}}`, version.Name)
	_, err := resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())

	object := get(ctx, crd, version.Name, name)
	annotations := object.GetAnnotations()
	annotations["updated-through"] = version.Name
	object.SetAnnotations(annotations)
	object, err = resource.Update(ctx, object, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())

	if hasStatus(version) {
		_, err = resource.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(get(ctx, crd, version.Name, name).GetAnnotations()).To(HaveKeyWithValue("updated-through", version.Name))
}

func hasStatus(version apiextensionsv1.CustomResourceDefinitionVersion) bool {
	return version.Subresources != nil && version.Subresources.Status != nil
}

func get(ctx SpecContext, crd *apiextensionsv1.CustomResourceDefinition, version, name string) *unstructured.Unstructured {
	GinkgoHelper()
	object, err := resourceOf(crd, version).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return object
}

func resourceOf(crd *apiextensionsv1.CustomResourceDefinition, version string) dynamic.ResourceInterface {
	resource := wire.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural})
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return resource.Namespace(namespace)
	}
	return resource
}

// content is an object without what the API server writes into it.
func content(object *unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for field, value := range object.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			content[field] = value
		}
	}
	return content
}

// missing are the fields of a version that were not written and could have been.
func missing(crd *apiextensionsv1.CustomResourceDefinition, version apiextensionsv1.CustomResourceDefinitionVersion, written map[string]bool) []string {
	var missing []string
	for path := range schemaPaths(*version.Schema.OpenAPIV3Schema) {
		if path == ".apiVersion" || path == ".kind" || path == ".metadata" || written[path] {
			continue
		}
		// No rule lets a task before a stage be a TimedWait.
		if strings.HasSuffix(path, ".beforeStageTasks[].waitTime") {
			continue
		}
		missing = append(missing, path)
	}
	return slices.Sorted(slices.Values(missing))
}
