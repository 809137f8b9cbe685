// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"context"
	"fmt"
	"os"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/test/support/expect"
)

const lastPool = "AKS Cluster must have at least one system pool"

var _ = Describe("The last system pool", func() {
	var namespace string
	BeforeEach(func(ctx SpecContext) {
		namespace = expect.FreshNamespace(ctx, masters)
		expect.Created(ctx, masters, capiCluster(namespace, "aks"))
	})

	It("cannot be deleted after the others", func(ctx SpecContext) {
		first, second, user := pool(namespace, "pool1", "System"), pool(namespace, "pool2", "System"), pool(namespace, "pool3", "User")
		for _, p := range []*unstructured.Unstructured{first, second, user} {
			expect.Created(ctx, masters, p)
		}
		Expect(masters.Delete(ctx, first)).To(Succeed())
		Expect(masters.Delete(ctx, second)).To(beInvalid("metadata.name", lastPool))
		Expect(change(ctx, masters, second, set("spec.mode", "User"))).To(beInvalid("metadata.name", "you must have at least one System node pool"))
		Expect(change(ctx, masters, second, set("metadata.labels", ""))).To(beInvalid("metadata.name", "you must have at least one System node pool"))
		Expect(masters.Delete(ctx, user)).To(Succeed())
		Expect(masters.Delete(ctx, pool(namespace, "pool2", "System"), client.DryRunAll)).To(beInvalid("metadata.name", lastPool))
	})

	It("is counted per cluster, and pools without a cluster do not count", func(ctx SpecContext) {
		expect.Created(ctx, masters, capiCluster(namespace, "other"))
		ours, theirs, nobodys := pool(namespace, "pool1", "System"), pool(namespace, "pool2", "System"), pool(namespace, "pool3", "System")
		theirs.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "other"})
		nobodys.SetLabels(nil)
		for _, p := range []*unstructured.Unstructured{ours, theirs, nobodys} {
			expect.Created(ctx, masters, p)
		}
		Expect(masters.Delete(ctx, ours)).To(beInvalid("metadata.name", lastPool))
		Expect(masters.Delete(ctx, nobodys)).To(Succeed())
	})

	It("can be deleted with its cluster", func(ctx SpecContext) {
		last := pool(namespace, "pool1", "System")
		expect.Created(ctx, masters, last)
		cluster := capiCluster(namespace, "aks")
		Expect(change(ctx, masters, cluster, set("metadata.finalizers", "[example.org/wait]"))).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(change(ctx, masters, cluster, set("metadata.finalizers", ""))).To(Succeed())
		})
		Expect(masters.Delete(ctx, last, client.DryRunAll)).To(beInvalid("metadata.name", lastPool))
		Expect(masters.Delete(ctx, cluster)).To(Succeed())
		Expect(masters.Delete(ctx, last)).To(Succeed())
	})

	It("can be deleted when its cluster is gone, when it is being moved, and with its namespace", func(ctx SpecContext) {
		orphan, moving, last := pool(namespace, "pool1", "System"), pool(namespace, "pool2", "System"), pool(namespace, "pool3", "System")
		orphan.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "gone"})
		expect.Created(ctx, masters, orphan)
		Expect(masters.Delete(ctx, orphan)).To(Succeed())
		moving.SetAnnotations(map[string]string{"clusterctl.cluster.x-k8s.io/delete-for-move": ""})
		expect.Created(ctx, masters, moving)
		Expect(masters.Delete(ctx, moving)).To(Succeed())
		expect.Created(ctx, masters, last)
		Expect(masters.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		Eventually(func() error { return masters.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}) }).Should(Satisfy(apierrors.IsNotFound))
	})

	It("ignores pools that are being deleted in its count", func(ctx SpecContext) {
		going, last := pool(namespace, "pool1", "System"), pool(namespace, "pool2", "System")
		going.SetFinalizers([]string{"example.org/wait"})
		expect.Created(ctx, masters, going)
		expect.Created(ctx, masters, last)
		DeferCleanup(func(ctx SpecContext) {
			Expect(change(ctx, masters, going, set("metadata.finalizers", ""))).To(Succeed())
		})
		Expect(masters.Delete(ctx, going)).To(Succeed())
		Expect(masters.Delete(ctx, last)).To(beInvalid("metadata.name", lastPool))
		Expect(masters.Delete(ctx, going)).To(Succeed(), "deleting a pool that is being deleted")
	})

	It("stays when fifty pools are deleted at once", func(ctx SpecContext) {
		const pools = 50
		for i := range pools {
			expect.Created(ctx, masters, pool(namespace, fmt.Sprintf("p%d", i), "System"))
		}
		refusals := deleteAll(ctx, namespace, pools)
		for _, err := range refusals {
			Expect(err).To(Or(beInvalid("metadata.name", lastPool), Satisfy(apierrors.IsTooManyRequests)))
		}
		for left := poolsIn(ctx, namespace); len(left) > 1; left = poolsIn(ctx, namespace) {
			Expect(masters.Delete(ctx, &left[0])).To(Succeed(), "rejections with a retry")
		}
		Expect(poolsIn(ctx, namespace)).To(HaveLen(1))
		Expect(refusals).NotTo(BeEmpty())
		var leases coordinationv1.LeaseList
		Expect(masters.List(ctx, &leases, client.InNamespace(clusterv1beta1.SystemNamespace), client.MatchingLabels{immutability.LabelGuard: "capz-last-system-pool"})).To(Succeed())
		Expect(leases.Items).To(ContainElement(HaveField("Annotations", HaveKeyWithValue(immutability.AnnotationReservations, ContainSubstring(namespace+"/p")))))
	})

	It("allows the book's recovery from a deleted MachinePool", func(ctx SpecContext) {
		cluster := capiCluster(namespace, "capz-managed-aks")
		expect.Created(ctx, masters, cluster)
		manifest, err := os.ReadFile("testdata/recovery.yaml")
		Expect(err).NotTo(HaveOccurred())
		pools := decode(manifest)
		Expect(pools).To(HaveLen(2))
		for _, p := range pools {
			p.SetNamespace(namespace)
			owners := p.GetOwnerReferences()
			owners[0].UID = cluster.GetUID()
			p.SetOwnerReferences(owners)
		}
		older, newer := pools[0], pools[1]
		expect.Created(ctx, masters, older)
		last := pool(namespace, "agentpool0", "System")
		last.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": "capz-managed-aks"})
		last.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Name: older.GetName(), UID: older.GetUID()}})
		expect.Created(ctx, masters, last)
		Expect(masters.Delete(ctx, older)).To(Succeed())
		Expect(masters.Delete(ctx, last)).To(beInvalid("metadata.name", "please refer to the trouble shooting section"))

		By("linking the pool to a new MachinePool, and deleting the old one")
		expect.Created(ctx, masters, newer)
		Expect(change(ctx, masters, last, func(o *unstructured.Unstructured) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "MachinePool", Name: newer.GetName(), UID: newer.GetUID()}})
			o.SetFinalizers([]string{"azuremanagedmachinepool.infrastructure.cluster.x-k8s.io"})
		})).To(Succeed())
		Expect(change(ctx, masters, older, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })).To(Succeed())
		Eventually(func() error { return masters.Get(ctx, client.ObjectKeyFromObject(older), older) }).Should(Satisfy(apierrors.IsNotFound))
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(last), last)).To(Succeed())
		Expect(last.GetDeletionTimestamp()).To(BeNil())
		Expect(change(ctx, masters, last, func(o *unstructured.Unstructured) { o.SetFinalizers(nil) })).To(Succeed())
	})
})

// deleteAll deletes pools p0, p1 and so on in parallel, and returns the rejections.
func deleteAll(ctx context.Context, namespace string, count int) []error {
	GinkgoHelper()
	var mu sync.Mutex
	var group sync.WaitGroup
	var refusals []error
	for i := range count {
		group.Go(func() {
			if err := masters.Delete(ctx, pool(namespace, fmt.Sprintf("p%d", i), "System")); err != nil {
				mu.Lock()
				defer mu.Unlock()
				refusals = append(refusals, err)
			}
		})
	}
	group.Wait()
	return refusals
}

func poolsIn(ctx context.Context, namespace string) []unstructured.Unstructured {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta1")
	list.SetKind("AzureManagedMachinePoolList")
	Expect(masters.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

func pool(namespace, name, mode string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf(`
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedMachinePool
metadata: {name: %s, namespace: %s, labels: {cluster.x-k8s.io/cluster-name: aks}}
spec: {mode: %s, sku: Standard_D2s_v3, osDiskSizeGB: 30}
`, name, namespace, mode))
}

func capiCluster(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: %s, namespace: %s}
spec:
  clusterNetwork: {services: {cidrBlocks: [10.1.0.0/16]}, pods: {cidrBlocks: [192.168.0.0/16]}}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureCluster, name: %[1]s}
`, name, namespace))
}

func machinePool(namespace, name string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: %s, namespace: %s, labels: {cluster.x-k8s.io/cluster-name: aks}}
spec: {clusterName: aks, template: {spec: {version: v1.21.2}}}
`, name, namespace))
}
