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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/env"
	"fleetgate.io/fleetgate/test/program"
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

// deleteFromHub deletes an object of the hub after the spec.
func deleteFromHub(object client.Object) {
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(hub.Delete(ctx, object))).To(Succeed()) })
}

var _ = Describe("What controllers of the hub made", func() {
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

	It("leaves the claims of a StatefulSet on the hub, also when the StatefulSet is gone", func(ctx SpecContext) {
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

// kubectlInput applies manifests on the hub with kubectl, which says who wrote what.
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

var _ = Describe("What an author chose", func() {
	It("leaves out what its author says", func(ctx SpecContext) {
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
