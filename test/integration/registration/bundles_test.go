// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
)

var _ = Describe("A registered Cluster", func() {
	It("shows how many bundles are ready on its member", func(ctx SpecContext) {
		namespace := makeNamespace(ctx)
		startGateway(gatewayOptions{})
		a := startAgent(agentOptions{namespace: makeAgentNamespace(ctx), clientID: namespace, bootstrap: enroll.Given(registrationValues(ctx, namespace))})
		name := expectEnrolled(ctx, a)
		expectJoined(ctx, name)
		bundles := func() string { return getCluster(ctx, namespace, name).Status.Display.ReadyBundles }
		Eventually(bundles).Should(Equal("0/0"))
		in := clusterv1beta1.MemberNamespace(name)
		works := []*placementv1beta1.Work{{ObjectMeta: named(in, "shop-work")}, {ObjectMeta: named(in, "shop-1")}, {ObjectMeta: named(in, "hand-made")}}
		for _, work := range works {
			if work.Name != "hand-made" {
				work.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "shop"}
			}
			Expect(hubClient.Create(ctx, work)).To(Succeed())
		}
		Eventually(bundles).Should(Equal("0/2"))
		for i, want := range []string{"0/2", "1/2", "2/2"} {
			for _, condition := range []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable} {
				meta.SetStatusCondition(&works[i].Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: works[i].Generation})
			}
			Expect(hubClient.Status().Update(ctx, works[i])).To(Succeed())
			Eventually(bundles).Should(Equal(want))
		}
		Expect(hubClient.Delete(ctx, works[2])).To(Succeed())
		Eventually(bundles).Should(Equal("1/1"))
	})
})
