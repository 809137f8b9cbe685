// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// setSays is the condition of a set as clusteradm prints it, and its reason.
func setSays(ctx context.Context, name string) (string, error) {
	set := &clusterv1beta2.ManagedClusterSet{}
	err := hubClient.Get(ctx, client.ObjectKey{Name: name}, set)
	condition := expect.Condition(set.Status.Conditions, "ClusterSetEmpty")
	return string(condition.Status) + "/" + condition.Reason + ": " + condition.Message, err
}

func boundOf(ctx context.Context, namespace, name string) ([]metav1.Condition, error) {
	binding := &clusterv1beta2.ManagedClusterSetBinding{}
	err := hubClient.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, binding)
	return binding.Status.Conditions, err
}

var _ = Describe("A ManagedClusterSet", func() {
	It("reports its number of clusters, by label and by selectors", func(ctx SpecContext) {
		for _, set := range []*clusterv1beta2.ManagedClusterSet{
			{ObjectMeta: build.Named("by-label")},
			{ObjectMeta: build.Named("by-selector"), Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
				SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"of": "sets"}},
			}}},
		} {
			expect.CreatedForSpec(ctx, hubClient, set)
		}
		Eventually(setSays).WithArguments(ctx, "by-label").Should(Equal("True/NoClusterMatched: No ManagedCluster selected"))
		for _, name := range []string{"set-1", "set-2"} {
			cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
			cluster.Labels = map[string]string{clusterv1.ClusterSetLabel: "by-label", "of": "sets"}
			expect.CreatedForSpec(ctx, hubClient, cluster)
		}
		Eventually(setSays).WithArguments(ctx, "by-label").Should(Equal("False/ClustersSelected: 2 ManagedClusters selected"))
		Eventually(setSays).WithArguments(ctx, "by-selector").Should(Equal("False/ClustersSelected: 2 ManagedClusters selected"))
		By("moving one of them to another set")
		moved := expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"elsewhere","of":"nothing"}}}`)
		Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("set-2")}, moved)).To(Succeed())
		for _, set := range []string{"by-label", "by-selector"} {
			Eventually(setSays).WithArguments(ctx, set).Should(Equal("False/ClustersSelected: 1 ManagedClusters selected"))
		}
		back := expect.MergePatch(`{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"by-label","of":"sets"}}}`)
		Expect(hubClient.Patch(ctx, &clusterv1.ManagedCluster{ObjectMeta: build.Named("set-2")}, back)).To(Succeed())
		Eventually(setSays).WithArguments(ctx, "by-label").Should(Equal("False/ClustersSelected: 2 ManagedClusters selected"))
		expect.Removed(ctx, hubClient, &clusterv1.ManagedCluster{ObjectMeta: build.Named("set-1")})
		Eventually(setSays).WithArguments(ctx, "by-label").Should(Equal("False/ClustersSelected: 1 ManagedClusters selected"))
		Expect(expect.Cells(ctx, hub.Config(), "/apis/cluster.open-cluster-management.io/v1beta2/managedclustersets/by-label")).To(HaveKeyWithValue("Empty", "False"))
	})

	It("always exists if it is default or global, with changes of users", func(ctx SpecContext) {
		selector := func(name string) func() (clusterv1beta2.SelectorType, error) {
			return func() (clusterv1beta2.SelectorType, error) {
				set := &clusterv1beta2.ManagedClusterSet{}
				err := hubClient.Get(ctx, client.ObjectKey{Name: name}, set)
				return set.Spec.ClusterSelector.SelectorType, err
			}
		}
		Eventually(selector("default")).Should(BeEquivalentTo("ExclusiveClusterSetLabel"))
		Eventually(selector("global")).Should(BeEquivalentTo("LabelSelector"))
		for _, name := range []string{"default", "global"} {
			Expect(hubClient.Delete(ctx, &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named(name)})).To(Succeed())
		}
		Eventually(selector("default")).Should(BeEquivalentTo("ExclusiveClusterSetLabel"))
		Eventually(selector("global")).Should(BeEquivalentTo("LabelSelector"))
		few := `{"metadata":{"annotations":{"of":"people"}},"spec":{"clusterSelector":{"labelSelector":{"matchLabels":{"vendor":"some"}}}}}`
		global := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("global")}
		Expect(hubClient.Patch(ctx, global, expect.MergePatch(few))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(global), global)).To(Succeed())
			g.Expect(global.Spec.ClusterSelector.LabelSelector.MatchLabels).To(BeEmpty())
		}).Should(Succeed())
		Expect(global.Annotations).To(HaveKeyWithValue("of", "people"))

		other := `{"metadata":{"labels":{"team":"a"}},"spec":{"clusterSelector":{"selectorType":"LabelSelector"}}}`
		usual := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("default")}
		Expect(hubClient.Patch(ctx, usual, expect.MergePatch(other))).To(Succeed())
		Eventually(selector("default")).Should(BeEquivalentTo("ExclusiveClusterSetLabel"))
		Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(usual), usual)).To(Succeed())
		Expect(usual.Labels).To(HaveKeyWithValue("team", "a"))

		By("keeping it deleted if that is wanted")
		Expect(hubClient.Patch(ctx, usual, expect.MergePatch(`{"metadata":{"annotations":{"cluster.open-cluster-management.io/autoupdate":"false"}}}`))).To(Succeed())
		Expect(hubClient.Patch(ctx, usual, expect.MergePatch(other))).To(Succeed())
		Consistently(selector("default")).Should(BeEquivalentTo("LabelSelector"))
		Expect(hubClient.Patch(ctx, usual, expect.MergePatch(`{"metadata":{"annotations":null}}`))).To(Succeed())
		Eventually(selector("default")).Should(BeEquivalentTo("ExclusiveClusterSetLabel"))
	})

	It("publishes its wanted namespaces to its clusters", func(ctx SpecContext) {
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("with-namespaces")}
		set.Spec.ManagedNamespaces = []clusterv1beta2.ManagedNamespaceConfig{{Name: "team-a"}}
		expect.CreatedForSpec(ctx, hubClient, set)
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named("wanted-there")}
		cluster.Labels = map[string]string{clusterv1.ClusterSetLabel: "with-namespaces"}
		expect.CreatedForSpec(ctx, hubClient, cluster)
		told := func() ([]clusterv1.ClusterSetManagedNamespaceStatus, error) {
			cluster, err := clusterOf(ctx, "wanted-there")
			return cluster.Status.ManagedNamespaces, err
		}
		Eventually(told).Should(HaveExactElements(clusterv1.ClusterSetManagedNamespaceStatus{ClusterSet: "with-namespaces", Name: "team-a"}))
		Expect(hubClient.Patch(ctx, set, expect.MergePatch(`{"spec":{"managedNamespaces":null}}`))).To(Succeed())
		Eventually(told).Should(BeEmpty())
	})

	It("is bound by a binding with its name, as long as the set exists", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, hubClient)
		expect.Created(ctx, hubClient, &clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: build.In(namespace, "bound"), Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "bound"},
		})
		Eventually(boundOf).WithArguments(ctx, namespace, "bound").Should(expect.HaveCondition("Bound", "False/ClusterSetNotFound"))
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: build.Named("bound")}
		expect.Created(ctx, hubClient, set)
		Eventually(boundOf).WithArguments(ctx, namespace, "bound").Should(expect.HaveCondition("Bound", "True/ClusterSetBound"))
		expect.Removed(ctx, hubClient, set)
		Eventually(boundOf).WithArguments(ctx, namespace, "bound").Should(expect.HaveCondition("Bound", "False/ClusterSetNotFound"))
	})
})
