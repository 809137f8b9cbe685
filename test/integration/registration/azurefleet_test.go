// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	azurefleetv1alpha1 "fleetgate.io/fleetgate/pkg/apis/azurefleet/v1alpha1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/test/support/expect"
)

// reasonsOf are the reasons of an object's events, with their times.
func reasonsOf(ctx context.Context, uid client.Object, namespace string) map[string]time.Time {
	GinkgoHelper()
	var events corev1.EventList
	Expect(hubClient.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
	at := map[string]time.Time{}
	for _, event := range events.Items {
		if event.InvolvedObject.UID == uid.GetUID() {
			at[event.Reason] = event.EventTime.Time
		}
	}
	return at
}

var _ = Describe("A MemberCluster of the first fleets", func() {
	It("joins, shows the documented status of that time, and leaves", func(ctx SpecContext) {
		startGateway(gatewayOptions{})
		name := "kind-" + strings.TrimPrefix(makeNamespace(ctx), "clusters-")
		mc := &azurefleetv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mc.Spec.State, mc.Spec.LeaseDurationSeconds = azurefleetv1alpha1.ClusterStateJoin, 30
		mc.Spec.Identity = subject("User", "principal-"+name)
		mc.Spec.Identity.Namespace, mc.Spec.Identity.APIGroup = "fleet-system", "rbac.authorization.k8s.io"
		Expect(hubClient.Create(ctx, mc, client.FieldValidation("Strict"))).To(Succeed())
		expectReadyToJoin(ctx, name)
		Expect(getMember(ctx, name).Spec.HeartbeatPeriodSeconds).To(BeEquivalentTo(30))

		config := hub.Config()
		config.Impersonate = rest.ImpersonationConfig{UserName: "principal-" + name, Groups: []string{"system:authenticated"}}
		running, stop := context.WithCancel(context.Background())
		a := &agent{ended: make(chan struct{})}
		a.running.Go(func() {
			defer GinkgoRecover()
			_ = a.runHeartbeat(running, memberClient, config, name)
		})
		DeferCleanup(func() {
			stop()
			a.running.Wait()
		})

		condition := func(kind string, status metav1.ConditionStatus, reason string) OmegaMatcher {
			return ContainElement(And(HaveField("Type", kind), HaveField("Status", status), HaveField("Reason", reason),
				HaveField("ObservedGeneration", BeNumerically(">=", 1))))
		}
		key := client.ObjectKeyFromObject(mc)
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, key, mc)).To(Succeed())
			g.Expect(mc.Status.Conditions).To(condition("HeartbeatReceived", metav1.ConditionTrue, "InternalMemberClusterHeartbeatReceived"))
			g.Expect(mc.Status.Conditions).To(condition("Joined", metav1.ConditionTrue, "MemberClusterJoined"))
			g.Expect(mc.Status.Capacity).To(HaveKey(corev1.ResourceCPU))
			g.Expect(mc.Status.Allocatable).To(HaveKey(corev1.ResourceMemory))
		}).Should(Succeed())
		var internal azurefleetv1alpha1.InternalMemberCluster
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(name), Name: name}, &internal)).To(Succeed())
			for kind, reason := range map[string]string{
				"HeartbeatReceived": "InternalMemberClusterHeartbeatReceived", "Synced": "ReconcileSuccess",
				"Joined": "InternalMemberClusterJoined", "Healthy": "InternalMemberClusterHealthy",
			} {
				g.Expect(internal.Status.Conditions).To(condition(kind, metav1.ConditionTrue, reason))
			}
		}).Should(Succeed())
		Expect(metav1.IsControlledBy(&internal, mc)).To(BeTrue())
		Expect(internal.Spec.LeaseDurationSeconds).To(BeEquivalentTo(30))
		inOrder := func(order ...string) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				at := reasonsOf(ctx, mc, "default")
				for i, reason := range order {
					g.Expect(at).To(HaveKey(reason))
					if i > 0 {
						g.Expect(at[reason]).NotTo(BeTemporally("<", at[order[i-1]]), "%s before %s", reason, order[i-1])
					}
				}
			}).Should(Succeed())
		}
		inOrder("NamespaceCreated", "InternalMemberClusterCreated", "RoleCreated", "RoleBindingCreated", "MemberClusterJoined")
		printed := "/apis/fleet.azure.com/v1alpha1/memberclusters/" + name
		Expect(expect.Cells(ctx, hub.Config(), printed)).To(And(HaveKeyWithValue("State", "Join"), HaveKeyWithValue("Joined", "MemberClusterJoined")))

		By("setting the state to Leave")
		base := mc.DeepCopy()
		mc.Spec.State = azurefleetv1alpha1.ClusterStateLeave
		Expect(hubClient.Patch(ctx, mc, client.MergeFrom(base))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(hubClient.Get(ctx, key, mc)).To(Succeed())
			g.Expect(mc.Status.Conditions).To(condition("Joined", metav1.ConditionFalse, "MemberClusterLeft"))
			g.Expect(mc.Status.Conditions).To(condition("Synced", metav1.ConditionTrue, "ReconcileSuccess"))
		}).Should(Succeed())
		expectGone(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1beta1.MemberNamespace(name)}})
		inOrder("MemberClusterJoined", "InternalMemberClusterSpecUpdated", "NamespaceDeleted", "MemberClusterLeft")
		Expect(expect.Cells(ctx, hub.Config(), printed)).To(And(HaveKeyWithValue("State", "Leave"), HaveKeyWithValue("Joined", "MemberClusterLeft")))
	})

	It("has a range for the lease, and two states", func(ctx SpecContext) {
		for what, change := range map[string]func(*azurefleetv1alpha1.MemberClusterSpec){
			"too long lease": func(s *azurefleetv1alpha1.MemberClusterSpec) { s.LeaseDurationSeconds = 601 },
			"negative lease": func(s *azurefleetv1alpha1.MemberClusterSpec) { s.LeaseDurationSeconds = -1 },
			"unknown state":  func(s *azurefleetv1alpha1.MemberClusterSpec) { s.State = "Stay" },
		} {
			mc := &azurefleetv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: "range-"}}
			mc.Spec.State, mc.Spec.Identity = azurefleetv1alpha1.ClusterStateJoin, subject("User", "x")
			change(&mc.Spec)
			Expect(apierrors.IsInvalid(hubClient.Create(ctx, mc))).To(BeTrue(), what)
		}
	})
})
