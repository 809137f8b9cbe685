// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// placeUntracked places a namespace with objects whose availability is not tracked.
func placeUntracked(ctx context.Context, name string) {
	GinkgoHelper()
	crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
	crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
	crp.Spec.Strategy.RollingUpdate = soonAvailable()
	Expect(hub.Create(ctx, crp)).To(Succeed())
}

var _ = Describe("Integers above 2^53 in custom resources", func() {
	It("are not rounded when a later manifest changes them", func(ctx SpecContext) {
		cleanUp("integers")
		const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"quotas.integers.example.org"},
"spec":{"group":"integers.example.org","names":{"kind":"Quota","plural":"quotas","singular":"quota","listKind":"QuotaList"},"scope":"Namespaced",
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
"properties":{"bytes":{"type":"integer","format":"int64"},"limits":{"type":"array","items":{"type":"integer","format":"int64"}}}}}}}}]}}`
		for _, cluster := range running.Clusters() {
			applyText(ctx, cluster, definition)
		}
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "integers"}})).To(Succeed())
		is := func(bytes, limit int64) any {
			return map[string]any{"bytes": bytes, "limits": []any{limit}}
		}
		quota := &unstructured.Unstructured{}
		quota.SetGroupVersionKind(schema.GroupVersionKind{Group: "integers.example.org", Version: "v1", Kind: "Quota"})
		quota.SetNamespace("integers")
		quota.SetName("q")
		quota.Object["spec"] = is(9007199254740992, 9007199254740992)
		Eventually(func(ctx context.Context) error { return hub.Create(ctx, quota) }).WithContext(ctx).Should(Succeed())
		placeUntracked(ctx, "integers")
		there := quota.DeepCopy()
		spec := memberHas("integers/q", there, func(q *unstructured.Unstructured) any { return q.Object["spec"] })
		Eventually(spec).WithContext(ctx).Should(Equal(is(9007199254740992, 9007199254740992)))
		quota.Object["spec"] = is(9007199254740993, 9223372036854775807) // kubectl apply would round them.
		Expect(hub.Update(ctx, quota)).To(Succeed())
		Eventually(spec).WithContext(ctx).Should(Equal(is(9007199254740993, 9223372036854775807)))
		Expect(member1.Patch(ctx, there.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"bytes":9007199254740992}}`)))).To(Succeed())
		Eventually(spec).WithContext(ctx).Should(Equal(is(9007199254740993, 9223372036854775807)))
	})
})

var _ = Describe("Nulls and empty values in custom resources", func() {
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"switches.nulls.example.org"},
"spec":{"group":"nulls.example.org","names":{"kind":"Switch","plural":"switches","singular":"switch","listKind":"SwitchList"},"scope":"Namespaced",
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
"mode":{"type":"string","nullable":true,"default":"automatic"},"unset":{"type":"string"},
"sync":{"type":"object","properties":{"heal":{"type":"boolean"}}},
"names":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}]}}`
	object := func(namespace string, spec map[string]any) *unstructured.Unstructured {
		s := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		s.SetGroupVersionKind(schema.GroupVersionKind{Group: "nulls.example.org", Version: "v1", Kind: "Switch"})
		s.SetNamespace(namespace)
		s.SetName("s")
		return s
	}
	change := func(ctx context.Context, namespace string, spec map[string]any) {
		GinkgoHelper()
		s := object(namespace, nil)
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(s), s)).To(Succeed())
		s.Object["spec"] = spec
		Expect(hub.Update(ctx, s)).To(Succeed())
	}
	for name, strategy := range map[string]placementv1beta1.ApplyStrategyType{
		"nulls": placementv1beta1.ClientSideApply, "nulls-ssa": placementv1beta1.ServerSideApply,
	} {
		It("reach members with "+string(strategy), func(ctx SpecContext) {
			cleanUp(name)
			for _, cluster := range running.Clusters() {
				applyText(ctx, cluster, definition)
			}
			Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
			full := func() map[string]any {
				return map[string]any{"mode": "manual", "sync": map[string]any{"heal": true}, "names": []any{"a", "b"}, "any": map[string]any{"a": map[string]any{"b": "c"}}}
			}
			Eventually(func(ctx context.Context) error { return hub.Create(ctx, object(name, full())) }).WithContext(ctx).Should(Succeed())
			crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
			crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
			crp.Spec.Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: strategy}
			crp.Spec.Strategy.RollingUpdate = soonAvailable()
			Expect(hub.Create(ctx, crp)).To(Succeed())
			spec := memberHas(name+"/s", object(name, nil), func(s *unstructured.Unstructured) any { return s.Object["spec"] })
			Eventually(spec).WithContext(ctx).Should(Equal(any(full())))

			emptied := map[string]any{"mode": "manual", "sync": map[string]any{}, "names": []any{}, "any": map[string]any{"a": map[string]any{}}}
			change(ctx, name, runtime.DeepCopyJSON(emptied))
			Eventually(spec).WithContext(ctx).Should(Equal(any(emptied)))
			Expect(failedOn(name)(ctx)).To(BeEmpty())
			change(ctx, name, full())
			Eventually(spec).WithContext(ctx).Should(Equal(any(full())))

			none := full()
			none["mode"] = nil // On the hub it is not the default, because the author said null.
			change(ctx, name, none)
			Eventually(spec).WithContext(ctx).Should(Equal(any(none)))
			waitAvailable(ctx, name)
		})
	}
})

var _ = Describe("Finalizers of a custom resource", func() {
	It("stay beside those of the manifest when a controller of the member adds them", func(ctx SpecContext) {
		const name = "finalizers"
		const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"buckets.finalizers.example.org"},
"spec":{"group":"finalizers.example.org","names":{"kind":"Bucket","plural":"buckets","singular":"bucket","listKind":"BucketList"},"scope":"Namespaced",
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
		for _, cluster := range running.Clusters() {
			applyText(ctx, cluster, definition)
		}
		bucket := func(finalizer string) string {
			return "\napiVersion: finalizers.example.org/v1\nkind: Bucket\nmetadata: {namespace: NAMESPACE, name: b, finalizers: [" + finalizer + "]}\n"
		}
		placeWithEnvelope(ctx, name, bucket("example.org/ours"))
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(schema.GroupVersionKind{Group: "finalizers.example.org", Version: "v1", Kind: "Bucket"})
		finalizers := memberHas(name+"/b", there, (*unstructured.Unstructured).GetFinalizers)
		Eventually(finalizers).WithContext(ctx).Should(ConsistOf("example.org/ours"))
		DeferCleanup(func(ctx SpecContext) {
			there.SetFinalizers(nil)
			Expect(client.IgnoreNotFound(member1.Patch(ctx, there, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))).To(Succeed())
		})
		Expect(member1.Patch(ctx, there.DeepCopy(), client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.org/theirs"}]`)))).To(Succeed())
		envelop(ctx, name, bucket("example.org/new"))
		Eventually(finalizers).WithContext(ctx).Should(ConsistOf("example.org/new", "example.org/theirs"))
		waitAvailable(ctx, name)
	})
})

var _ = Describe("Pull secrets of a ServiceAccount", func() {
	It("stay beside those of the manifest when a controller of the member adds them", func(ctx SpecContext) {
		const account = `
apiVersion: v1
kind: ServiceAccount
metadata: {namespace: NAMESPACE, name: app}
imagePullSecrets: [`
		placeWithEnvelope(ctx, "pull", account+`{name: ours}]`)
		names := memberHas("pull/app", &corev1.ServiceAccount{}, func(a *corev1.ServiceAccount) []string {
			var all []string
			for _, secret := range a.ImagePullSecrets {
				all = append(all, secret.Name)
			}
			return all
		})
		Eventually(names).WithContext(ctx).Should(ConsistOf("ours"))
		app := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "pull", Name: "app"}}
		Expect(member1.Patch(ctx, app, client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op":"add","path":"/imagePullSecrets/-","value":{"name":"app-dockercfg-x8x2p"}}]`)))).To(Succeed())
		envelop(ctx, "pull", account+`{name: changed}]`)
		Eventually(names).WithContext(ctx).Should(ConsistOf("changed", "app-dockercfg-x8x2p"))
		waitAvailable(ctx, "pull")
		envelop(ctx, "pull", account+`]`)
		Eventually(names).WithContext(ctx).Should(ConsistOf("app-dockercfg-x8x2p"))
		waitAvailable(ctx, "pull")
	})
})

var _ = Describe("A namespace that is being deleted on the member", func() {
	It("gets the objects of a ResourcePlacement as soon as it exists again", func(ctx SpecContext) {
		const name = "terminating"
		cleanUp(name)
		held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		Expect(member1.Create(ctx, held)).To(Succeed())
		release := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "keeps", Finalizers: []string{"example.org/keeps"}}}
		Expect(member1.Create(ctx, release)).To(Succeed())
		Expect(member1.Delete(ctx, held)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(member1.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
		})
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "placed"}, Data: map[string]string{"a": "1"}})).To(Succeed())
		Expect(hub.Create(ctx, &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name},
			Spec: placementv1beta1.PlacementSpec{
				ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "ConfigMap", Name: "placed"}},
				Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"member-1"}},
			}})).To(Succeed())
		refused := func(ctx context.Context) (string, error) {
			rp := &placementv1beta1.ResourcePlacement{}
			err := hub.Get(ctx, client.ObjectKey{Namespace: name, Name: name}, rp)
			for _, status := range rp.Status.PlacementStatuses {
				for _, failed := range status.FailedPlacements {
					return failed.Condition.Message, err
				}
			}
			return "", err
		}
		Eventually(refused).WithContext(ctx).Should(ContainSubstring("being terminated"))
		Expect(member1.Patch(ctx, release, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Eventually(func(ctx context.Context) error {
			return member1.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}).WithContext(ctx).Should(Succeed())
		Eventually(memberHas(name+"/placed", &corev1.ConfigMap{}, func(c *corev1.ConfigMap) string { return c.Data["a"] })).
			WithContext(ctx).Should(Equal("1"))
	})
})

var _ = Describe("The default IngressClass of the hub", func() {
	It("stays on the hub, and a class that the author chose is placed", func(ctx SpecContext) {
		cleanUp("ingress-class")
		applyText(ctx, running.Hub, `{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: hub-default, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}, spec: {controller: example.org/hub}}`)
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, running.Hub, "delete", "ingressclass", "hub-default")
		})
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ingress-class"}})).To(Succeed())
		ingress := func(name, class string) string {
			return `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {namespace: ingress-class, name: ` + name + `}, spec: {` + class + `defaultBackend: {service: {name: web, port: {number: 80}}}}}`
		}
		applyText(ctx, running.Hub, ingress("default", ""))
		applyText(ctx, running.Hub, ingress("chosen", "ingressClassName: chosen, "))
		placeUntracked(ctx, "ingress-class")
		class := func(i *networkingv1.Ingress) string { return ptr.Deref(i.Spec.IngressClassName, "") }
		onHub := &networkingv1.Ingress{}
		Expect(hub.Get(ctx, client.ObjectKey{Namespace: "ingress-class", Name: "default"}, onHub)).To(Succeed())
		Expect(class(onHub)).To(Equal("hub-default"))
		Eventually(memberHas("ingress-class/default", &networkingv1.Ingress{}, class)).WithContext(ctx).Should(BeEmpty())
		Eventually(memberHas("ingress-class/chosen", &networkingv1.Ingress{}, class)).WithContext(ctx).Should(Equal("chosen"))

		By("keeping the class that the member chose when the Ingress changes")
		there := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "ingress-class", Name: "default"}}
		Expect(member1.Patch(ctx, there, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"ingressClassName":"member-default"}}`)))).To(Succeed())
		applyText(ctx, running.Hub, ingress("default", "rules: [{host: example.org}], "))
		Eventually(memberHas("ingress-class/default", &networkingv1.Ingress{}, func(i *networkingv1.Ingress) []networkingv1.IngressRule { return i.Spec.Rules })).
			WithContext(ctx).Should(HaveLen(1))
		Expect(memberHas("ingress-class/default", &networkingv1.Ingress{}, class)(ctx)).To(Equal("member-default"))
	})
})

var _ = Describe("A claim that was expanded on the member", func() {
	It("keeps its size, and gets other changes of the manifest", func(ctx SpecContext) {
		applyText(ctx, running.Members[0].Cluster, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: grown}, provisioner: example.org/none, allowVolumeExpansion: true}`)
		applyText(ctx, running.Members[0].Cluster, `{apiVersion: v1, kind: PersistentVolume, metadata: {name: grown}, spec: {storageClassName: grown, capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp/grown}, claimRef: {namespace: grown, name: data}}}`)
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, running.Members[0].Cluster, "delete", "--wait=false", "storageclass/grown", "persistentvolume/grown")
		})
		manifest := func(label string) string {
			return `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: NAMESPACE, name: data, labels: {changed: "` + label + `"}}
spec: {storageClassName: grown, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
		}
		placeWithEnvelope(ctx, "grown", manifest("no"))
		claim := memberHas("grown/data", &corev1.PersistentVolumeClaim{}, func(c *corev1.PersistentVolumeClaim) string {
			return string(c.Status.Phase) + " " + c.Spec.Resources.Requests.Storage().String() + " " + c.Labels["changed"]
		})
		Eventually(claim).WithContext(ctx).Should(Equal("Bound 1Gi no"))
		Expect(member1.Patch(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "grown", Name: "data"}},
			client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)))).To(Succeed())
		envelop(ctx, "grown", manifest("yes"))
		Eventually(claim).WithContext(ctx).Should(Equal("Bound 2Gi yes"))
		Eventually(failedOn("grown")).WithContext(ctx).Should(BeEmpty())
	})
})
