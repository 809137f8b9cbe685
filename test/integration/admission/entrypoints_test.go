// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// written returns the object as a client of this API version sends it, with a fixed name.
func written(object client.Object, version, name string) *unstructured.Unstructured {
	GinkgoHelper()
	kinds, _, err := scheme.ObjectKinds(object)
	Expect(err).NotTo(HaveOccurred())
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kinds[0].GroupKind().WithVersion(version))
	u.SetGenerateName("")
	u.SetName(name)
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u
}

// applied writes with server-side apply.
func applied(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody"), client.ForceOwnership)
}

var _ = Describe("With every write operation and API version", func() {
	var author *tenant
	BeforeEach(func(ctx SpecContext) {
		author = newTenant(ctx)
		author.may(ctx, placementv1beta1.GroupName, "*", "create", "update", "patch", "get")
		author.may(ctx, "", "configmaps", "get")
		author.has(ctx, secretNamed("token"), configMapNamed("settings"))
		Eventually(func() error {
			return author.Create(ctx, author.placing(selecting("v1", "ConfigMap", "settings")), client.DryRunAll)
		}).Should(Succeed())
	})

	It("a placement is rejected when its author cannot read a selected resource", func(ctx SpecContext) {
		refused := beInvalid("spec.resourceSelectors[0]", `cannot get or place secrets "token"`)
		secret := author.placing(selecting("v1", "Secret", "token"))
		for _, version := range []string{"v1", "v1beta1"} {
			Expect(author.Create(ctx, written(secret, version, "posted"))).To(refused, version)
			Expect(author.Create(ctx, written(secret, version, "posted"), client.DryRunAll)).To(refused, version)
			Expect(applied(ctx, author, written(secret, version, "applied"))).To(refused, version)
		}

		By("changing an accepted placement")
		placed := written(author.placing(selecting("v1", "ConfigMap", "settings")), "v1beta1", "placed")
		Expect(author.Create(ctx, placed)).To(Succeed())
		const selectors = `[{"group":"","version":"v1","kind":"Secret","name":"token"}]`
		for _, version := range []string{"v1", "v1beta1"} {
			one := written(secret, version, "placed")
			Expect(author.Patch(ctx, one.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resourceSelectors":`+selectors+`}}`)))).To(refused, version)
			Expect(author.Patch(ctx, one.DeepCopy(), client.RawPatch(types.JSONPatchType,
				[]byte(`[{"op":"replace","path":"/spec/resourceSelectors","value":`+selectors+`}]`)))).To(refused, version)
			Expect(applied(ctx, author, one.DeepCopy())).To(refused, version)
			one.SetResourceVersion(placed.GetResourceVersion())
			Expect(author.Update(ctx, one)).To(refused, version)
		}

		By("updating its status, which leaves spec and annotation unchanged")
		forged := written(secret, "v1beta1", "placed")
		forged.SetResourceVersion(placed.GetResourceVersion())
		forged.SetAnnotations(map[string]string{answer: `{"author":"admin","may":{"":["*"]}}`})
		Expect(unstructured.SetNestedField(forged.Object, "7", "status", "observedResourceIndex")).To(Succeed())
		author.may(ctx, placementv1beta1.GroupName, "resourceplacements/status", "update")
		Eventually(func() error { return author.Status().Update(ctx, forged.DeepCopy()) }).Should(Succeed())
		now := placed.DeepCopy()
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(placed), now)).To(Succeed())
		Expect(now.Object["spec"]).To(Equal(placed.Object["spec"]))
		Expect(now.GetAnnotations()).To(Equal(placed.GetAnnotations()))
		Expect(now.Object["status"]).To(HaveKeyWithValue("observedResourceIndex", "7"), "the status update had no effect")
	})

	It("the author annotation stays, also when the placement is applied without it", func(ctx SpecContext) {
		placed := written(author.placing(selecting("v1", "ConfigMap", "settings")), "v1beta1", "applied")
		for _, tier := range []string{"one", "two"} {
			placed.SetLabels(map[string]string{"tier": tier})
			Expect(applied(ctx, author, placed.DeepCopy())).To(Succeed())
			Expect(masters.Get(ctx, client.ObjectKeyFromObject(placed), placed.DeepCopy())).To(Succeed())
			now := &placementv1beta1.ResourcePlacement{}
			Expect(masters.Get(ctx, client.ObjectKeyFromObject(placed), now)).To(Succeed())
			Expect(now.Labels).To(HaveKeyWithValue("tier", tier))
			Expect(now).To(author.says(fmt.Sprintf(`%q:["configmaps/settings"]`, author.namespace)))
		}
		placed.SetAnnotations(map[string]string{answer: `{"author":"admin","may":{"":["*"]}}`})
		Expect(applied(ctx, author, placed.DeepCopy())).To(Succeed())
		now := &placementv1beta1.ResourcePlacement{}
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(placed), now)).To(Succeed())
		Expect(now).To(author.says(fmt.Sprintf(`%q:["configmaps/settings"]`, author.namespace)))
	})

	It("a placement that is being deleted keeps its author annotation", func(ctx SpecContext) {
		placed := author.placing(selecting("v1", "ConfigMap", "settings"))
		placed.Finalizers = []string{"example.org/stay"}
		Expect(author.Create(ctx, placed)).To(Succeed())
		Expect(masters.Delete(ctx, placed)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(masters.Patch(ctx, placed, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		})
		Expect(change(ctx, author, placed, func(p *placementv1beta1.ResourcePlacement) {
			p.Annotations[answer] = `{"author":"admin","may":{"":["*"]}}`
		})).To(Satisfy(apierrors.IsForbidden))
		Expect(change(ctx, author, placed, func(p *placementv1beta1.ResourcePlacement) { delete(p.Annotations, answer) })).To(Satisfy(apierrors.IsForbidden))
	})

	It("an override is rejected when its author cannot update the resource", func(ctx SpecContext) {
		override := resourceOverride("settings")
		override.Namespace = author.namespace
		refused := beInvalid("spec.resourceSelectors[0]", `cannot update configmaps "settings"`)
		for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
			Expect(author.Create(ctx, written(override, version, "posted"))).To(refused, version)
			Expect(applied(ctx, author, written(override, version, "applied"))).To(refused, version)
		}
	})

	It("an envelope is rejected when its author cannot create an object in it", func(ctx SpecContext) {
		held := envelope(enveloped("v1", "Secret", author.namespace, "x", nil))
		held.Namespace = author.namespace
		Expect(author.Create(ctx, written(held, "v1beta1", "posted"))).To(beInvalid("data[a]", `cannot create or update secrets "x"`))
		Expect(applied(ctx, author, written(held, "v1beta1", "applied"))).To(beInvalid("data[a]", `cannot create or update secrets "x"`))
	})

	It("only the gateway creates what members apply", func(ctx SpecContext) {
		user := everythingOf(ctx, "ways-"+author.namespace, newNamespace(ctx))
		for resource, versions := range map[string][]string{
			"clusterresourcesnapshots": {"v1", "v1beta1"}, "clusterresourcebindings": {"v1", "v1beta1"}, "works": {"v1", "v1beta1"},
			"clusterresourceoverridesnapshots": {"v1", "v1beta1", "v1alpha1"}, "resourceoverridesnapshots": {"v1", "v1beta1", "v1alpha1"}, "resourcebindings": {"v1beta1"},
		} {
			object := deliveriesIn(author.namespace, "x")[resource]
			bindClusterRole(ctx, "ways-"+resource+"-"+author.namespace, "ways-"+author.namespace, rbacv1.PolicyRule{
				APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{resource}, Verbs: []string{"*"}})
			for _, version := range versions {
				Eventually(func() error { return applied(ctx, user, written(object, version, "applied")) }).
					Should(beForbidden("cannot write "+resource), "%s in %s", resource, version)
				Expect(user.Create(ctx, written(object, version, "posted"))).To(beForbidden("cannot write "+resource), "%s in %s", resource, version)
			}
		}
	})

	It("a chart can be described only by a user with the verb render", func(ctx SpecContext) {
		author.may(ctx, "", "configmaps", "create", "update", "patch")
		describing := written(&corev1.ConfigMap{Data: map[string]string{"values.yaml": "a: 1"}}, "v1", "settings")
		describing.SetNamespace(author.namespace)
		describing.SetAnnotations(map[string]string{placementv1beta1.HelmChartAnnotation: "mine"})
		Eventually(func() error { return applied(ctx, author, describing) }).Should(beForbidden("cannot render configmaps"))
		Expect(author.Patch(ctx, describing.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"fleetgate.io/helm-chart":"mine"}}}`)))).
			To(beForbidden("cannot render configmaps"))
	})
})
