// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// restored replaces all objects of a placement and its members as a backup tool does: with new UIDs, in the
// order of their resources, and without status and owners.
func restored(ctx context.Context, placement string, members ...string) {
	GinkgoHelper()
	mine := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement}
	named := client.MatchingFields{"metadata.name": placement}
	var backup []*unstructured.Unstructured
	for _, kind := range []struct {
		kind string
		by   []client.ListOption
	}{
		{"ClusterResourceBinding", []client.ListOption{mine}}, {"ClusterResourcePlacement", []client.ListOption{named}},
		{"ClusterResourceSnapshot", []client.ListOption{mine}}, {"ClusterSchedulingPolicySnapshot", []client.ListOption{mine}},
		{"MemberCluster", nil}, {"Work", []client.ListOption{mine}},
	} {
		group := placementv1beta1.GroupVersion
		if kind.kind == "MemberCluster" {
			group = clusterv1beta1.GroupVersion
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(group.WithKind(kind.kind + "List"))
		Expect(hub.List(ctx, list, kind.by...)).To(Succeed())
		for i := range list.Items {
			if object := &list.Items[i]; kind.kind != "MemberCluster" || slices.Contains(members, object.GetName()) {
				backup = append(backup, object)
			}
		}
	}
	for _, object := range backup {
		lost := object.DeepCopy() // The garbage collector may have deleted it with its owner.
		unfinalized := hub.Patch(ctx, lost, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
		Expect(client.IgnoreNotFound(unfinalized)).To(Succeed())
		Expect(client.IgnoreNotFound(hub.Delete(ctx, lost))).To(Succeed())
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(lost), lost) }).Should(MatchError(ContainSubstring("not found")))
	}
	for _, object := range backup {
		unstructured.RemoveNestedField(object.Object, "status")
		for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "ownerReferences", "selfLink"} {
			unstructured.RemoveNestedField(object.Object, "metadata", field)
		}
		Expect(hub.Create(ctx, object)).To(Succeed())
	}
}

var _ = Describe("A placement that was restored object by object", func() {
	It("keeps its members and their Works, though no member has reported yet", func(ctx SpecContext) {
		shop(ctx, "rst-shop")
		joinAll(ctx, "rst", nil, nil)
		for _, name := range []string{"rst-1", "rst-2"} {
			report(ctx, name, withProperty("example.com/gpus", "4"))
		}
		place(ctx, "rst", "rst-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].PropertySelector = &placementv1beta1.PropertySelector{
				MatchExpressions: []placementv1beta1.PropertySelectorRequirement{{Name: "example.com/gpus", Operator: placementv1beta1.PropertySelectorGreaterThan, Values: []string{"2"}}}}
		})
		expectAvailable(ctx, "rst", "0")
		expectOn(ctx, "rst", "rst-1", "rst-2")

		gateway.stop()
		restored(ctx, "rst", "rst-1", "rst-2")
		before := map[string]*placementv1beta1.Work{}
		for _, member := range []string{"rst-1", "rst-2"} {
			work, err := workOf(ctx, member, "rst")
			Expect(err).NotTo(HaveOccurred())
			before[member] = work
		}
		gateway = startGateway()
		unchanged := func(g Gomega) {
			for _, member := range []string{"rst-1", "rst-2"} {
				work, err := workOf(ctx, member, "rst")
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(work.UID).To(Equal(before[member].UID))
				g.Expect(work.DeletionTimestamp).To(BeNil())
			}
		}
		Eventually(func(g Gomega) {
			crp, err := statusOf(ctx, "rst")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementScheduled")).NotTo(BeNil())
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		Consistently(unchanged).WithTimeout(5 * time.Second).WithPolling(often).Should(Succeed())

		By("continuing when the members report again")
		for _, name := range []string{"rst-1", "rst-2"} {
			member := &clusterv1beta1.MemberCluster{}
			Expect(hub.Get(ctx, client.ObjectKey{Name: name}, member)).To(Succeed())
			withProperty("example.com/gpus", "4")(&member.Status)
			heartbeat(ctx, member)
		}
		Eventually(summary).WithContext(ctx).WithArguments("rst").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
		unchanged(Default)
	})
})
