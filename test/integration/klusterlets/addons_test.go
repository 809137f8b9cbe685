// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlets_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

// addOnOf is an add-on of a cluster, without a status.
func addOnOf(cluster, name string) *unstructured.Unstructured {
	addOn := &unstructured.Unstructured{}
	addOn.SetAPIVersion("addon.open-cluster-management.io/v1alpha1")
	addOn.SetKind("ManagedClusterAddOn")
	addOn.SetNamespace(cluster)
	addOn.SetName(name)
	return addOn
}

var _ = Describe("An add-on of a cluster", func() {
	label := func(ctx context.Context, cluster, addOn string) (string, error) {
		live, err := clusterOf(ctx, cluster)
		return live.Labels["feature.open-cluster-management.io/addon-"+addOn], err
	}

	It("is shown by a label with its status, and as unreachable once the cluster has no heartbeat", func(ctx SpecContext) {
		const name = "with-dns"
		a := join(ctx, name)
		addOn := addOnOf(name, "dns")
		expect.Created(ctx, hubClient, addOn)
		Eventually(label).WithArguments(ctx, name, "dns").Should(Equal("unreachable"))

		By("reporting its status")
		said := func(status string) {
			GinkgoHelper()
			Expect(a.hub().Status().Patch(ctx, addOn, expect.MergePatch(`{"status":{"conditions":[{"type":"Available","status":"`+status+`","reason":"Said","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`))).To(Succeed())
		}
		said("True")
		Eventually(label).WithArguments(ctx, name, "dns").Should(Equal("available"))
		said("False")
		Eventually(label).WithArguments(ctx, name, "dns").Should(Equal("unhealthy"))

		By("stopping the heartbeat")
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(name)}
		Expect(hubClient.Patch(ctx, cluster, expect.MergePatch(`{"spec":{"leaseDurationSeconds":1}}`))).To(Succeed())
		Eventually(label).WithArguments(ctx, name, "dns").Should(Equal("unreachable"))
		Eventually(func() (any, error) {
			err := hubClient.Get(ctx, client.ObjectKeyFromObject(addOn), addOn)
			conditions, _, _ := unstructured.NestedSlice(addOn.Object, "status", "conditions")
			return conditions, err
		}).Should(ConsistOf(And(HaveKeyWithValue("status", "Unknown"), HaveKeyWithValue("reason", "ManagedClusterLeaseUpdateStopped"))))

		By("deleting it")
		expect.Removed(ctx, hubClient, addOn)
		Eventually(label).WithArguments(ctx, name, "dns").Should(BeEmpty())
	})

	It("of a member of ours is shown on its ManagedCluster, whatever labels the member has", func(ctx SpecContext) {
		const name = "member-with-dns"
		member := newMember(ctx, name, true)
		Eventually(conditionsOf).WithArguments(ctx, name).Should(expect.HaveCondition("ManagedClusterConditionAvailable", "True/ManagedClusterAvailable"))
		expect.Created(ctx, hubClient, addOnOf(name, "dns"))
		Eventually(label).WithArguments(ctx, name, "dns").Should(Equal("unreachable"))
		Expect(hubClient.Patch(ctx, member, expect.MergePatch(`{"metadata":{"labels":{"feature.open-cluster-management.io/addon-dns":"available","feature.open-cluster-management.io/addon-none":"available"}}}`))).To(Succeed())
		for addOn, is := range map[string]string{"dns": "unreachable", "none": ""} {
			Consistently(label).WithArguments(ctx, name, addOn).Should(Equal(is))
		}
	})
})
