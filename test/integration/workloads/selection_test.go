// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/program"
)

// hubCluster is the fleet's hub, for kubectl.
func hubCluster() *env.Cluster { return running.Clusters()[0] }

// selectedBy names what a placement selects, as "Kind/name".
func selectedBy(name string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		crp, err := placement(ctx, name)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, r := range crp.Status.SelectedResources {
			names = append(names, r.Kind+"/"+r.Name)
		}
		return names, nil
	}
}

// onMembers gets an object from each member.
func onMembers(ctx context.Context, key client.ObjectKey, object client.Object, check func(g Gomega)) {
	GinkgoHelper()
	for _, m := range []client.Client{member1, member2} {
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(m.Get(ctx, key, object)).To(Succeed())
			check(g)
		}).WithContext(ctx).Should(Succeed())
	}
}

// snapshotsOf counts the resource snapshots of a placement.
func snapshotsOf(ctx context.Context, name string) (int, error) {
	list := &placementv1beta1.ClusterResourceSnapshotList{}
	err := hub.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name})
	return len(list.Items), err
}

// unreadableOf is a placement's message about unreadable kinds.
func unreadableOf(name string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		crp, err := placement(ctx, name)
		if err != nil {
			return "", err
		}
		c := meta.FindStatusCondition(crp.Status.Conditions, placementv1beta1.ConditionResourcesUnreadable)
		if c == nil {
			return "", nil
		}
		return c.Reason + ": " + c.Message, nil
	}
}

// deleteFromHub deletes an object of the hub after the spec.
func deleteFromHub(object client.Object) {
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed()) })
}

var _ = Describe("Kinds that the hub cannot read", Serial, func() {
	topic := func() *unstructured.Unstructured {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "r13.example.org", Version: "v1alpha1", Kind: "Topic"})
		return object
	}

	It("keeps other placements working while a conversion webhook on the hub is unavailable", func(ctx SpecContext) {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		crd.SetName("topics.r13.example.org")
		deleteFromHub(crd)
		applyFile(ctx, hubCluster(), "13-conversion-1.yaml")
		Eventually(func(ctx context.Context) error {
			return hub.Get(ctx, client.ObjectKey{Name: "any", Namespace: "r13"}, topic())
		}).WithContext(ctx).Should(MatchError(ContainSubstring("\"any\" not found")))
		applyFile(ctx, hubCluster(), "13-conversion-2.yaml")
		for _, name := range []string{"r13", "r13-other"} {
			cleanUp(name)
			crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
			crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: name}}
			if name == "r13" {
				crp.Spec.ResourceSelectors = append(crp.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{
					Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "topics.r13.example.org"})
			} else {
				Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
			}
			Expect(hub.Create(ctx, crp)).To(Succeed())
		}
		uids := map[client.Client]string{}
		for _, m := range []client.Client{member1, member2} {
			Eventually(func(g Gomega, ctx context.Context) {
				object := topic()
				g.Expect(m.Get(ctx, client.ObjectKey{Namespace: "r13", Name: "orders"}, object)).To(Succeed())
				uids[m] = string(object.GetUID())
			}).WithContext(ctx).Should(Succeed())
		}
		waitAvailable(ctx, "r13-other")

		By("changing the CustomResourceDefinition")
		applyFile(ctx, hubCluster(), "13-conversion-3.yaml")
		Eventually(unreadableOf("r13")).WithContext(ctx).WithTimeout(time.Minute).Should(And(
			HavePrefix(placementv1beta1.ReasonKindUnavailable), ContainSubstring("topics.r13.example.org"), ContainSubstring("members keep what they have")))
		Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "r13-other", Name: "late"}})).To(Succeed())
		onMembers(ctx, client.ObjectKey{Namespace: "r13-other", Name: "late"}, &corev1.ConfigMap{}, func(Gomega) {})
		for m, uid := range uids {
			object := topic()
			Expect(m.Get(ctx, client.ObjectKey{Namespace: "r13", Name: "orders"}, object)).To(Succeed())
			Expect(string(object.GetUID())).To(Equal(uid), "it was re-created")
		}

		By("restoring the definition")
		kubectl(ctx, hubCluster(), "patch", "crd", "topics.r13.example.org", "--type=json", "-p", `[{"op": "replace", "path": "/spec/conversion", "value": {"strategy": "None"}}]`)
		Eventually(unreadableOf("r13")).WithContext(ctx).Should(BeEmpty())
	})

	It("keeps the objects of an aggregated API that is unavailable when the gateway starts", func(ctx SpecContext) {
		cleanUp("r13-aggregated")
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "r13-aggregated"}})).To(Succeed())
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		service.SetName("v1.down.example.org")
		Expect(unstructured.SetNestedMap(service.Object, map[string]any{
			"group": "down.example.org", "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(10), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "r13-aggregated", "name": "nobody"}}, "spec")).To(Succeed())
		Expect(hub.Create(ctx, service)).To(Succeed())
		deleteFromHub(service)
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "r13-aggregated"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: crp.Name}}
		Expect(hub.Create(ctx, crp)).To(Succeed())
		Eventually(unreadableOf(crp.Name)).WithContext(ctx).WithTimeout(time.Minute).Should(And(
			HavePrefix(placementv1beta1.ReasonKindUnavailable), ContainSubstring("down.example.org/v1"), ContainSubstring("None of these are placed")))
		onMembers(ctx, client.ObjectKey{Name: crp.Name}, &corev1.Namespace{}, func(Gomega) {})
		Expect(hub.Delete(ctx, service)).To(Succeed())
		Eventually(unreadableOf(crp.Name)).WithContext(ctx).WithTimeout(time.Minute).Should(BeEmpty())
	})
})

var _ = Describe("Objects of the hub's controllers", func() {
	It("leaves the Jobs of a CronJob on the hub", func(ctx SpecContext) {
		cleanUp("r01")
		applyFile(ctx, hubCluster(), "01-cronjob-jobs.yaml")
		jobs := func(ctx context.Context) (int, error) {
			list := &batchv1.JobList{}
			err := hub.List(ctx, list, client.InNamespace("r01"))
			return len(list.Items), err
		}
		Eventually(jobs).WithContext(ctx).WithTimeout(2 * time.Minute).Should(BeNumerically(">", 0))
		waitAvailable(ctx, "r01")
		Expect(selectedBy("r01")(ctx)).To(ConsistOf("Namespace/r01", "CronJob/billing"))
		Expect(snapshotsOf(ctx, "r01")).To(Equal(1))
	})

	It("leaves the claims of a StatefulSet on the hub, also after its deletion", func(ctx SpecContext) {
		cleanUp("r05")
		applyFile(ctx, hubCluster(), "05-statefulset-storageclass.yaml")
		kubectl(ctx, hubCluster(), "apply", "-f", "testdata/05-statefulset-claims.yaml")
		deleteFromHub(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": map[string]any{"name": "hub-ssd"}}})
		claim := &corev1.PersistentVolumeClaim{}
		Eventually(func(ctx context.Context) error {
			return hub.Get(ctx, client.ObjectKey{Namespace: "r05", Name: "data-db-0"}, claim)
		}).WithContext(ctx).Should(Succeed())
		Eventually(selectedBy("r05")).WithContext(ctx).Should(ConsistOf("Namespace/r05", "Service/db", "StatefulSet/db"))
		kubectl(ctx, hubCluster(), "-n", "r05", "label", "pvc", "data-db-0", "touched=true")
		Expect(hub.Delete(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "r05", Name: "db"}})).To(Succeed())
		Eventually(selectedBy("r05")).WithContext(ctx).Should(Not(ContainElement("StatefulSet/db")))
		Consistently(selectedBy("r05"), "3s", "300ms").WithContext(ctx).Should(Not(ContainElement("PersistentVolumeClaim/data-db-0")))
	})

	It("binds a static volume and its claim on members", func(ctx SpecContext) {
		cleanUp("r04")
		applyFile(ctx, hubCluster(), "04-static-volume-1.yaml")
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "r04-nfs"}}
		deleteFromHub(volume)
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(hub.Get(ctx, client.ObjectKeyFromObject(volume), volume)).To(Succeed())
			g.Expect(volume.Status.Phase).To(Equal(corev1.VolumeBound))
		}).WithContext(ctx).Should(Succeed())
		applyFile(ctx, hubCluster(), "04-static-volume-2.yaml")
		onMembers(ctx, client.ObjectKey{Name: "r04-nfs"}, volume, func(g Gomega) { g.Expect(volume.Status.Phase).To(Equal(corev1.VolumeBound)) })
		claim := &corev1.PersistentVolumeClaim{}
		onMembers(ctx, client.ObjectKey{Namespace: "r04", Name: "data"}, claim, func(g Gomega) { g.Expect(claim.Status.Phase).To(Equal(corev1.ClaimBound)) })
	})

	It("leaves finalizers on the hub", func(ctx SpecContext) {
		cleanUp("r11")
		DeferCleanup(func(ctx SpecContext) {
			for _, kind := range []string{"service/web", "configmap/guarded"} {
				kubectl(ctx, hubCluster(), "-n", "r11", "patch", kind, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			}
		})
		applyFile(ctx, hubCluster(), "11-finalizers.yaml")
		service, settings := &corev1.Service{}, &corev1.ConfigMap{}
		onMembers(ctx, client.ObjectKey{Namespace: "r11", Name: "guarded"}, settings, func(g Gomega) { g.Expect(settings.Finalizers).To(BeEmpty()) })
		onMembers(ctx, client.ObjectKey{Namespace: "r11", Name: "web"}, service, func(g Gomega) {
			g.Expect(service.Finalizers).NotTo(ContainElement("hub-operator.example.org/cleanup"))
		})
		kubectl(ctx, hubCluster(), "-n", "r11", "annotate", "configmap", "guarded", placementv1beta1.PlaceFinalizersAnnotation+"=true")
		onMembers(ctx, client.ObjectKey{Namespace: "r11", Name: "guarded"}, settings, func(g Gomega) { g.Expect(settings.Finalizers).NotTo(BeEmpty()) })
		kubectl(ctx, hubCluster(), "-n", "r11", "annotate", "configmap", "guarded", placementv1beta1.PlaceFinalizersAnnotation+"-")
		onMembers(ctx, client.ObjectKey{Namespace: "r11", Name: "guarded"}, settings, func(g Gomega) { g.Expect(settings.Finalizers).To(BeEmpty()) })
	})

	It("leaves the computed rules of an aggregated ClusterRole on the hub", func(ctx SpecContext) {
		cleanUp("r16")
		for _, name := range []string{"r16-monitoring", "r16-hub-part"} {
			deleteFromHub(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		kubectl(ctx, running.Clusters()[1], "apply", "-f", "testdata/16-member-part.yaml")
		applyFile(ctx, hubCluster(), "16-aggregated-role.yaml")
		Eventually(selectedBy("r16")).WithContext(ctx).Should(ConsistOf("ClusterRole/r16-monitoring"))
		list := &placementv1beta1.ClusterResourceSnapshotList{}
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(hub.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "r16"})).To(Succeed())
			g.Expect(list.Items).To(HaveLen(1))
		}).WithContext(ctx).Should(Succeed())
		Expect(string(list.Items[0].Spec.SelectedResources[0].Raw)).To(And(ContainSubstring("aggregationRule"), Not(ContainSubstring(`"rules"`))))
	})

	It("leaves the replicas that an autoscaler of the hub sets on the hub", func(ctx SpecContext) {
		cleanUp("r08-hub")
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "r08-hub"}})).To(Succeed())
		input := strings.ReplaceAll(deploymentWithReplicas, "NAMESPACE", "r08-hub")
		kubectlInput(ctx, input)
		kubectl(ctx, hubCluster(), "-n", "r08-hub", "autoscale", "deployment", "web", "--min=3", "--max=6", "--cpu=80%")
		web := &appsv1.Deployment{}
		Eventually(func(g Gomega, ctx context.Context) {
			g.Expect(hub.Get(ctx, client.ObjectKey{Namespace: "r08-hub", Name: "web"}, web)).To(Succeed())
			g.Expect(*web.Spec.Replicas).To(BeNumerically(">=", 3))
		}).WithContext(ctx).Should(Succeed())
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "r08-hub"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{
			{Version: "v1", Kind: "Namespace", Name: "r08-hub", SelectionScope: placementv1beta1.NamespaceWithResourceSelectors},
			{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}}
		Expect(hub.Create(ctx, crp)).To(Succeed())
		onMembers(ctx, client.ObjectKey{Namespace: "r08-hub", Name: "web"}, web, func(g Gomega) { g.Expect(*web.Spec.Replicas).To(BeEquivalentTo(2)) })
	})
})

// kubectlInput applies manifests on the hub with kubectl, which sets the field managers.
func kubectlInput(ctx context.Context, manifests string) {
	GinkgoHelper()
	output, err := program.Kubectl(ctx, hubCluster(), manifests, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred(), output)
}

// deploymentWithReplicas is what an author applies with kubectl.
const deploymentWithReplicas = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: NAMESPACE, name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.org/web:1", resources: {requests: {cpu: 10m}}}]}
`

var _ = Describe("Objects and annotations of other controllers of the hub", func() {
	It("stay on the hub: what an operator creates for a placed owner, and the identity of a load balancer", func(ctx SpecContext) {
		const name = "operators"
		cleanUp(name)
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
		configMap := func(of string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: of, OwnerReferences: owners}, Data: map[string]string{"a": "1"}}
		}
		owner := configMap("kafka")
		Expect(hub.Create(ctx, owner, client.FieldOwner("kubectl-create"))).To(Succeed())
		ownedBy := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}
		Expect(hub.Create(ctx, configMap("kafka-ca", ownedBy), client.FieldOwner("strimzi-cluster-operator"))).To(Succeed())
		authored := configMap("settings")
		Expect(hub.Create(ctx, authored, client.FieldOwner("kubectl-create"))).To(Succeed())
		authored.OwnerReferences = []metav1.OwnerReference{ownedBy}
		Expect(hub.Update(ctx, authored, client.FieldOwner("strimzi-cluster-operator"))).To(Succeed())

		Expect(hub.Create(ctx, configMap("by-hand", ownedBy), client.FieldOwner("kubectl-client-side-apply"))).To(Succeed())

		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web", Annotations: map[string]string{"example.org/mine": "1"}},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		Expect(hub.Create(ctx, service, client.FieldOwner("kubectl-create"))).To(Succeed())
		Expect(hub.Patch(ctx, service, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.org/load-balancer-id":"1"}}}`)),
			client.FieldOwner("example-cloud-controller-manager"))).To(Succeed())
		By("creating Secrets without an owner, as the External Secrets Operator does with creationPolicy Orphan and Merge")
		applyText(ctx, running.Hub, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"externalsecrets.external-secrets.io"},
"spec":{"group":"external-secrets.io","names":{"kind":"ExternalSecret","plural":"externalsecrets","singular":"externalsecret","listKind":"ExternalSecretList"},"scope":"Namespaced",
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
		DeferCleanup(func(ctx SpecContext) {
			kubectl(ctx, running.Hub, "delete", "customresourcedefinition", "externalsecrets.external-secrets.io")
		})
		external := &unstructured.Unstructured{}
		external.SetGroupVersionKind(schema.GroupVersionKind{Group: "external-secrets.io", Version: "v1", Kind: "ExternalSecret"})
		external.SetNamespace(name)
		external.SetName("db")
		Eventually(func(ctx context.Context) error { return hub.Create(ctx, external.DeepCopy()) }).WithContext(ctx).Should(Succeed())
		operator := client.FieldOwner("externalsecrets.external-secrets.io/db")
		secret := func(of string) *corev1.Secret {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: of}, Data: map[string][]byte{"mine": []byte("1")}}
		}
		Expect(hub.Create(ctx, secret("orphan"), operator)).To(Succeed())
		merged := secret("merged")
		Expect(hub.Create(ctx, merged, client.FieldOwner("kubectl-create"))).To(Succeed())
		Expect(hub.Patch(ctx, merged, client.RawPatch(types.MergePatchType, []byte(`{"data":{"theirs":"MQ=="}}`)), operator)).To(Succeed())
		placeUntracked(ctx, name)
		Eventually(selectedBy(name)).WithContext(ctx).Should(ConsistOf("Namespace/"+name, "ConfigMap/kafka", "ConfigMap/settings", "ConfigMap/by-hand", "Service/web",
			"ExternalSecret/db", "Secret/merged"))
		Eventually(memberHas(name+"/merged", &corev1.Secret{}, func(s *corev1.Secret) map[string][]byte { return s.Data })).WithContext(ctx).
			Should(Equal(map[string][]byte{"mine": []byte("1")}))
		annotations := memberHas(name+"/web", &corev1.Service{}, func(s *corev1.Service) map[string]string { return s.Annotations })
		Eventually(annotations).WithContext(ctx).Should(HaveKeyWithValue("example.org/mine", "1"))
		Expect(annotations(ctx)).NotTo(HaveKey("example.org/load-balancer-id"))
	})
})

var _ = Describe("Values of an author", func() {
	It("places a fixed node port and Endpoints of a Service without a selector, but no allocated node port", func(ctx SpecContext) {
		cleanUp("r18-ports")
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "r18-ports"}})).To(Succeed())
		kubectlInput(ctx, `
apiVersion: v1
kind: Service
metadata: {namespace: r18-ports, name: fixed}
spec: {type: NodePort, selector: {app: web}, ports: [{name: a, port: 80, nodePort: 32118}, {name: b, port: 81}]}
---
apiVersion: v1
kind: Service
metadata: {namespace: r18-ports, name: outside}
spec: {ports: [{port: 5432}]}
---
apiVersion: v1
kind: Endpoints
metadata: {namespace: r18-ports, name: outside}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 5432}]}]
`)
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "r18-ports"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "r18-ports"}}
		Expect(hub.Create(ctx, crp)).To(Succeed())
		Eventually(selectedBy("r18-ports")).WithContext(ctx).Should(ConsistOf("Namespace/r18-ports", "Service/fixed", "Service/outside", "Endpoints/outside"))
		fixed := &corev1.Service{}
		onMembers(ctx, client.ObjectKey{Namespace: "r18-ports", Name: "fixed"}, fixed, func(g Gomega) {
			g.Expect(fixed.Spec.Ports).To(HaveLen(2))
			g.Expect(fixed.Spec.Ports[0].NodePort).To(BeEquivalentTo(32118))
		})
	})

	It("excludes what its author excludes", func(ctx SpecContext) {
		cleanUp("r01-skip")
		Expect(hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "r01-skip"}})).To(Succeed())
		for _, name := range []string{"kept", "placed"} {
			Expect(hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "r01-skip", Name: name}})).To(Succeed())
		}
		kubectl(ctx, hubCluster(), "-n", "r01-skip", "annotate", "configmap", "kept", placementv1beta1.PlaceAnnotation+"="+placementv1beta1.PlaceSkip)
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "r01-skip"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "r01-skip"}}
		Expect(hub.Create(ctx, crp)).To(Succeed())
		Eventually(selectedBy("r01-skip")).WithContext(ctx).Should(ConsistOf("Namespace/r01-skip", "ConfigMap/placed"))
	})
})
