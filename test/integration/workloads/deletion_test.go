// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
)

var _ = Describe("Deletion on members", func() {
	It("keeps a namespace that existed on the member before the placement, when the placement moves and when it is deleted", func(ctx SpecContext) {
		cleanUp("r14")
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(member1.Delete(ctx, deletionNamespace("r14")))).To(Succeed())
		})
		applyFile(ctx, running.Members[0].Cluster, "14-member-namespace.yaml")
		applyFile(ctx, running.Hub, "14-hub.yaml")
		waitAvailable(ctx, "r14")
		namespace := deletionNamespace("r14")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		Expect(namespace.OwnerReferences).To(HaveLen(1))
		Expect(namespace.Annotations).To(HaveKeyWithValue(placementv1beta1.TakenOverAnnotation, "true"))
		uid := namespace.UID

		By("moving the placement to the other member")
		kubectl(ctx, running.Hub, "patch", "clusterresourceplacement", "r14", "--type=merge", "-p", `{"spec":{"policy":{"clusterNames":["member-2"]}}}`)
		Eventually(deletionGone(member1, deletionConfigMap("r14", "placed"))).WithContext(ctx).Should(BeTrue())
		Eventually(deletionWorks("member-1", "r14")).WithContext(ctx).Should(BeEmpty())
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		Expect(namespace.UID).To(Equal(uid))
		Expect(namespace.DeletionTimestamp).To(BeNil())
		Expect(namespace.OwnerReferences).To(BeEmpty())
		Expect(namespace.Labels).To(HaveKeyWithValue("owner", "local-team"))
		for key := range namespace.Annotations {
			Expect(key).NotTo(ContainSubstring("fleet"))
		}

		By("moving it back, and deleting it")
		kubectl(ctx, running.Hub, "patch", "clusterresourceplacement", "r14", "--type=merge", "-p", `{"spec":{"policy":{"clusterNames":["member-1"]}}}`)
		waitAvailable(ctx, "r14")
		Eventually(deletionGone(member2, deletionNamespace("r14"))).WithContext(ctx).Should(BeTrue(), "fleetgate created that one, and nobody else used it")
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r14")
		Eventually(deletionGone(member1, deletionConfigMap("r14", "placed"))).WithContext(ctx).Should(BeTrue())
		Eventually(deletionWorks("member-1", "r14")).WithContext(ctx).Should(BeEmpty())
		local := deletionConfigMap("r14", "local-only")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(local), local)).To(Succeed())
		Expect(local.Data).To(HaveKeyWithValue("precious", "yes"))
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		Expect(namespace.UID).To(Equal(uid))
		Expect(namespace.DeletionTimestamp).To(BeNil())
	})

	// The gateway of the chart can list objects, but cannot get them.
	It("removes many objects that were deleted on the hub, without a confirmation", func(ctx SpecContext) {
		cleanUp("r43-many")
		kubectl(ctx, running.Hub, "create", "namespace", "r43-many")
		var all []string
		for i := range 7 {
			all = append(all, fmt.Sprintf("c-%d", i))
			Expect(hub.Create(ctx, deletionConfigMap("r43-many", all[i]))).To(Succeed())
		}
		placeUntracked(ctx, "r43-many")
		waitAvailable(ctx, "r43-many")
		kubectl(ctx, running.Hub, append([]string{"delete", "configmap", "-n", "r43-many"}, all[:6]...)...)
		for _, name := range all[:6] {
			Eventually(deletionGone(member1, deletionConfigMap("r43-many", name))).WithContext(ctx).Should(BeTrue(), name)
		}
		crp, err := placement(ctx, "r43-many")
		Expect(err).NotTo(HaveOccurred())
		Expect(meta.FindStatusCondition(crp.Status.Conditions, placementv1beta1.ConditionRemovalSuspended)).To(BeNil())
		Expect(member1.Get(ctx, client.ObjectKey{Namespace: "r43-many", Name: all[6]}, &corev1.ConfigMap{})).To(Succeed())
	})

	It("keeps a previously existing object unchanged, without an owner or annotation of ours", func(ctx SpecContext) {
		deletionPlace(ctx, "r14-object", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: r14-object, name: before}, data: {a: hub}}`, func() {
			kubectl(ctx, running.Members[0].Cluster, "create", "namespace", "r14-object")
			kubectl(ctx, running.Members[0].Cluster, "create", "configmap", "before", "-n", "r14-object", "--from-literal=local=yes")
		})
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r14-object")
		Eventually(deletionWorks("member-1", "r14-object")).WithContext(ctx).Should(BeEmpty())
		before := deletionConfigMap("r14-object", "before")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(before), before)).To(Succeed())
		Expect(before.Data).To(HaveKeyWithValue("local", "yes"))
		Expect(before.OwnerReferences).To(BeEmpty())
		Expect(before.Annotations).To(BeEmpty())
	})

	It("deletes a previously existing object if its author says so", func(ctx SpecContext) {
		deletionPlace(ctx, "r14-delete", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: r14-delete, name: before, annotations: {fleetgate.io/delete-policy: Delete}}}`, func() {
			kubectl(ctx, running.Members[0].Cluster, "create", "namespace", "r14-delete")
			kubectl(ctx, running.Members[0].Cluster, "create", "configmap", "before", "-n", "r14-delete")
		})
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r14-delete")
		Eventually(deletionGone(member1, deletionConfigMap("r14-delete", "before"))).WithContext(ctx).Should(BeTrue())
		Eventually(deletionWorks("member-1", "r14-delete")).WithContext(ctx).Should(BeEmpty())
		Expect(deletionGone(member1, deletionNamespace("r14-delete"))(ctx)).To(BeFalse())
	})

	It("keeps a namespace that it created while it has a foreign object, and names that object", func(ctx SpecContext) {
		deletionPlace(ctx, "r14-shared", `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: r14-shared, name: placed}}`, nil)
		kubectl(ctx, running.Members[0].Cluster, "create", "configmap", "local-only", "-n", "r14-shared")
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r14-shared")
		Eventually(deletionWorks("member-1", "r14-shared")).WithContext(ctx).Should(BeEmpty())
		Expect(deletionGone(member1, deletionConfigMap("r14-shared", "placed"))(ctx)).To(BeTrue())
		Expect(deletionGone(member1, deletionConfigMap("r14-shared", "local-only"))(ctx)).To(BeFalse())
		namespace := deletionNamespace("r14-shared")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		Expect(namespace.DeletionTimestamp).To(BeNil())
		Expect(namespace.OwnerReferences).To(BeEmpty())
		Expect(namespace.Annotations).To(HaveKeyWithValue(placementv1beta1.RetainedAnnotation, ContainSubstring("r14-shared/local-only")))
		Eventually(func(ctx context.Context) string {
			return kubectl(ctx, running.Hub, "get", "events", "-n", "fleet-member-member-1", "-o", `jsonpath={range .items[?(@.reason=="Retained")]}{.message}{"\n"}{end}`)
		}).WithContext(ctx).Should(And(ContainSubstring("Namespace r14-shared"), ContainSubstring("r14-shared/local-only")))
		Expect(member1.Delete(ctx, namespace)).To(Succeed())
		Eventually(deletionGone(member2, deletionNamespace("r14-shared"))).WithContext(ctx).Should(BeTrue(), "nobody else used that one")
	})

	It("keeps a previously existing definition, and its own one while it has foreign resources", func(ctx SpecContext) {
		cleanUp("r15")
		DeferCleanup(func(ctx SpecContext) {
			for _, at := range running.Clusters() {
				kubectl(ctx, at, "delete", "crd", "certs.r15.example.org", "--ignore-not-found")
			}
		})
		applyFile(ctx, running.Members[0].Cluster, "15-crd.yaml")
		applyFile(ctx, running.Hub, "15-crd.yaml")
		applyFile(ctx, running.Hub, "15-hub-placement.yaml")
		waitAvailable(ctx, "r15")
		for _, member := range running.Members {
			deletionApplyFile(ctx, member.Cluster, "15-member-cr.yaml")
		}
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r15")
		for i, c := range []client.Client{member1, member2} {
			Eventually(deletionWorks(running.Members[i].Name, "r15")).WithContext(ctx).Should(BeEmpty())
			local := deletionObject("r15.example.org/v1", "Cert", "default", "local")
			Expect(c.Get(ctx, client.ObjectKeyFromObject(local), local)).To(Succeed())
			Expect(local.GetDeletionTimestamp()).To(BeNil())
		}
	})

	It("deletes or releases objects of a version that the member no longer serves", func(ctx SpecContext) {
		const definition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gauges.r14.example.org},
			spec: {group: r14.example.org, scope: Namespaced, names: {plural: gauges, kind: Gauge}, versions: [
				{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}},
				{name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
		gauge := func(name string) *unstructured.Unstructured {
			return deletionObject("r14.example.org/v1", "Gauge", "r14-version", name)
		}
		cleanUp("r14-version")
		DeferCleanup(func(ctx SpecContext) {
			for _, at := range running.Clusters() {
				kubectl(ctx, at, "delete", "crd", "gauges.r14.example.org", "--ignore-not-found")
			}
			Expect(client.IgnoreNotFound(member1.Delete(ctx, deletionNamespace("r14-version")))).To(Succeed())
		})
		for _, c := range []client.Client{hub, member1} {
			deletionCreate(ctx, c, definition)
			Expect(c.Create(ctx, deletionNamespace("r14-version"))).To(Succeed())
		}
		Eventually(func() error { return member1.Create(ctx, gauge("before")) }).WithContext(ctx).Should(Succeed())
		deletionApply(ctx, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {namespace: r14-version, name: gauges}, data: {
			before: {apiVersion: r14.example.org/v1alpha1, kind: Gauge, metadata: {namespace: r14-version, name: before}},
			placed: {apiVersion: r14.example.org/v1alpha1, kind: Gauge, metadata: {namespace: r14-version, name: placed}}}}`)
		deletionApply(ctx, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: r14-version},
			spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: r14-version}], policy: {placementType: PickFixed, clusterNames: [member-1]}}}`)
		waitAvailable(ctx, "r14-version")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(gauge("placed")), gauge("placed"))).To(Succeed())

		kubectl(ctx, running.Members[0].Cluster, "patch", "crd", "gauges.r14.example.org", "--type=json", "-p", `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
		Eventually(func() error {
			return member1.Get(ctx, client.ObjectKeyFromObject(gauge("placed")), deletionObject("r14.example.org/v1alpha1", "Gauge", "r14-version", "placed"))
		}).WithContext(ctx).ShouldNot(Succeed())
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r14-version")
		Eventually(deletionWorks("member-1", "r14-version")).WithContext(ctx).Should(BeEmpty())
		Eventually(deletionGone(member1, gauge("placed"))).WithContext(ctx).Should(BeTrue())
		before := gauge("before")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(before), before)).To(Succeed())
		Expect(before.GetDeletionTimestamp()).To(BeNil())
		Expect(before.GetOwnerReferences()).To(BeEmpty())
	})

	It("deletes custom resources before the operator that removes their finalizers", func(ctx SpecContext) {
		cleanUp("r10")
		for _, file := range []string{"10-operator-1.yaml", "10-operator-2.yaml"} {
			deletionApplyFile(ctx, running.Hub, file)
		}
		waitAvailable(ctx, "r10")
		photos := deletionObject("r10.example.org/v1", "Bucket", "r10", "photos")
		Expect(member1.Get(ctx, client.ObjectKeyFromObject(photos), photos)).To(Succeed())
		finalizer := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["r10.example.org/bucket"]}}`))
		Expect(member1.Patch(ctx, photos, finalizer)).To(Succeed())
		kubectl(ctx, running.Hub, "delete", "clusterresourceplacement", "r10", "--wait=false")

		By("keeping the operator while the bucket is deleted")
		Eventually(deletionRemoved("member-1", "r10")).WithContext(ctx).Should(And(
			ContainSubstring("Bucket.r10.example.org r10/photos"), ContainSubstring("r10.example.org/bucket"), ContainSubstring("kubectl patch")))
		operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "r10", Name: "operator"}}
		Consistently(func(g Gomega, ctx context.Context) {
			g.Expect(member1.Get(ctx, client.ObjectKeyFromObject(operator), operator)).To(Succeed())
			g.Expect(operator.DeletionTimestamp).To(BeNil())
			g.Expect(operator.Status.ReadyReplicas).To(BeEquivalentTo(1))
		}).WithContext(ctx).WithTimeout(deletionWatch).Should(Succeed())

		By("removing the rest as soon as the operator has removed the finalizer")
		Expect(member1.Patch(ctx, photos, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Eventually(deletionWorks("member-1", "r10")).WithContext(ctx).Should(BeEmpty())
		Eventually(deletionGone(member1, deletionNamespace("r10"))).WithContext(ctx).Should(BeTrue())
		Eventually(deletionGone(member1, deletionObject("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "buckets.r10.example.org"))).WithContext(ctx).Should(BeTrue())
	})
})

// deletionWatch is how long specs check that something stays.
const deletionWatch = 5 * time.Second

// deletionPlace places a namespace of the hub with one object in it, and waits until it is available.
// before is called first.
func deletionPlace(ctx context.Context, name, object string, before func()) {
	GinkgoHelper()
	cleanUp(name)
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(member1.Delete(ctx, deletionNamespace(name)))).To(Succeed())
	})
	if before != nil {
		before()
	}
	kubectl(ctx, running.Hub, "create", "namespace", name)
	for _, text := range []string{object, `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: ` + name + `},
		spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + name + `}]}}`} {
		deletionApply(ctx, text)
	}
	waitAvailable(ctx, name)
}

// deletionApply creates an object on the hub.
func deletionApply(ctx context.Context, text string) {
	GinkgoHelper()
	deletionCreate(ctx, hub, text)
}

func deletionCreate(ctx context.Context, c client.Client, text string) {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(text), object)).To(Succeed())
	Expect(c.Create(ctx, object)).To(Succeed())
}

func deletionNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func deletionConfigMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func deletionObject(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// deletionGone reports whether an object does not exist.
func deletionGone(c client.Client, object client.Object) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return true, nil
		}
		return false, err
	}
}

// deletionWorks lists the Works of a placement for a member.
func deletionWorks(member, placement string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		list := &placementv1beta1.WorkList{}
		err := hub.List(ctx, list, client.InNamespace("fleet-member-"+member), client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement})
		names := make([]string, 0, len(list.Items))
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, err
	}
}

// deletionRemoved is the message about the removal in the Works of a placement for a member.
func deletionRemoved(member, placement string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		list := &placementv1beta1.WorkList{}
		err := hub.List(ctx, list, client.InNamespace("fleet-member-"+member), client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement})
		var all []string
		for i := range list.Items {
			if c := meta.FindStatusCondition(list.Items[i].Status.Conditions, placementv1beta1.ConditionRemoved); c != nil {
				all = append(all, c.Message)
			}
		}
		return strings.Join(all, "\n"), err
	}
}

// deletionApplyFile applies a file with objects of a kind that is possibly not installed yet.
func deletionApplyFile(ctx context.Context, at *env.Cluster, file string) {
	GinkgoHelper()
	Eventually(func(ctx context.Context) error {
		_, err := program.Kubectl(ctx, at, "", "apply", "-f", filepath.Join("testdata", file))
		return err
	}).WithContext(ctx).Should(Succeed())
}
