// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expect is the verbs and matchers that suites on real API servers have in common:
// each fails the spec in the line that called it. A verb that only one suite needs stands in
// its verbs_test.go.
package expect

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/test/support/build"
)

// Client reaches a cluster, without a cache.
func Client(config *rest.Config, scheme *runtime.Scheme) client.Client {
	ginkgo.GinkgoHelper()
	c, err := client.New(config, client.Options{Scheme: scheme})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return c
}

// Created makes objects.
func Created(ctx context.Context, c client.Client, objects ...client.Object) {
	ginkgo.GinkgoHelper()
	for _, object := range objects {
		gomega.Expect(c.Create(ctx, object)).To(gomega.Succeed())
	}
}

// CreatedForSpec makes an object, and takes it away after the spec, which waits until it is
// gone.
func CreatedForSpec(ctx context.Context, c client.Client, object client.Object) {
	ginkgo.GinkgoHelper()
	Created(ctx, c, object)
	ginkgo.DeferCleanup(func(ctx ginkgo.SpecContext) { Removed(ctx, c, object) })
}

// Removed deletes an object, if it is there, and waits until it is gone.
func Removed(ctx context.Context, c client.Client, object client.Object) {
	ginkgo.GinkgoHelper()
	gomega.Expect(client.IgnoreNotFound(c.Delete(ctx, object))).To(gomega.Succeed())
	gomega.Eventually(Gone(ctx, c, object)).Should(gomega.BeTrue(), "%T %s is gone", object, client.ObjectKeyFromObject(object))
}

// Gone asks whether an object no longer exists.
func Gone(ctx context.Context, c client.Client, object client.Object) func() bool {
	return func() bool {
		return apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(object), object))
	}
}

// FreshNamespace makes a namespace for one spec, with labels as keys and values by turns, and
// returns its name.
func FreshNamespace(ctx context.Context, c client.Client, labels ...string) string {
	ginkgo.GinkgoHelper()
	namespace := build.Namespace("", labels...)
	namespace.GenerateName = "spec-"
	Created(ctx, c, namespace)
	return namespace.Name
}

// Found gets an object of any kind.
func Found(ctx context.Context, c client.Client, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	return object, err
}

// ConfigMap gets one that is there.
func ConfigMap(ctx context.Context, c client.Client, namespace, name string) *corev1.ConfigMap {
	ginkgo.GinkgoHelper()
	object := &corev1.ConfigMap{}
	gomega.Expect(c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)).To(gomega.Succeed())
	return object
}

// Data are those of a ConfigMap; nil if it is not there.
func Data(ctx context.Context, c client.Client, namespace, name string) func() map[string]string {
	return func() map[string]string {
		object := &corev1.ConfigMap{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			return nil
		}
		return object.Data
	}
}

// MergePatch is a merge patch in JSON.
func MergePatch(text string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(text))
}

// Raw reads manifests in YAML or JSON.
func Raw(texts ...string) []runtime.RawExtension {
	ginkgo.GinkgoHelper()
	list := make([]runtime.RawExtension, 0, len(texts))
	for _, text := range texts {
		raw, err := yaml.YAMLToJSON([]byte(text))
		gomega.Expect(err).NotTo(gomega.HaveOccurred())
		list = append(list, runtime.RawExtension{Raw: raw})
	}
	return list
}
