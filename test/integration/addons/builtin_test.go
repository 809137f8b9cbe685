// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A member's agent", func() {
	// available is the condition of each add-on of a cluster, by name.
	available := func(ctx context.Context, cluster string) (map[string]string, error) {
		list := &addonv1alpha1.ManagedClusterAddOnList{}
		err := hubClient.List(ctx, list, client.InNamespace(cluster))
		all := map[string]string{}
		for i := range list.Items {
			all[list.Items[i].Name] = string(expect.Condition(list.Items[i].Status.Conditions, addonv1alpha1.ConditionAvailable).Status)
		}
		return all, err
	}
	condition := func(conditions *[]metav1.Condition, kind string, status metav1.ConditionStatus) {
		meta.SetStatusCondition(conditions, metav1.Condition{Type: kind, Status: status, Reason: "Said", Message: "so"})
	}

	It("shows its features as add-ons that are available while they work", func(ctx SpecContext) {
		b := newBed(ctx)
		member := &clusterv1beta1.MemberCluster{ObjectMeta: build.Named(b.name("m"))}
		member.Spec.Identity.Kind, member.Spec.Identity.Name = "User", "somebody"
		expect.CreatedForSpec(ctx, hubClient, member)
		expect.Created(ctx, hubClient, build.Namespace(member.Name, clusterv1.ClusterNameLabel, member.Name), build.Namespace(clusterv1beta1.MemberNamespace(member.Name)))
		assigned := func() (string, error) {
			namespace := build.Namespace(member.Name)
			err := hubClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return namespace.Labels[clusterv1beta1.LabelMember], err
		}
		cluster := &clusterv1.ManagedCluster{ObjectMeta: build.Named(member.Name)}
		cluster.Annotations = map[string]string{membermirror.MemberAnnotation: string(member.UID)}
		expect.CreatedForSpec(ctx, hubClient, cluster)
		Consistently(available).WithArguments(ctx, member.Name).Should(BeEmpty())

		says := func(status metav1.ConditionStatus) {
			GinkgoHelper()
			condition(&cluster.Status.Conditions, clusterv1.ConditionAvailable, status)
			Expect(hubClient.Status().Update(ctx, cluster)).To(Succeed())
		}
		says(metav1.ConditionTrue)
		Eventually(available).WithArguments(ctx, member.Name).Should(Equal(map[string]string{
			"cluster-gateway": "False", "cluster-proxy": "False", "managed-serviceaccount": "False",
		}))

		By("opening a tunnel and reporting the token")
		condition(&member.Status.Conditions, clusterv1beta1.ConditionTunnelConnected, metav1.ConditionTrue)
		Expect(hubClient.Status().Update(ctx, member)).To(Succeed())
		account := &authenticationv1beta1.ManagedServiceAccount{ObjectMeta: build.In(clusterv1beta1.MemberNamespace(member.Name), authenticationv1beta1.GatewayAccount)}
		expect.Created(ctx, hubClient, account)
		condition(&account.Status.Conditions, authenticationv1beta1.ConditionTokenReported, metav1.ConditionTrue)
		Expect(hubClient.Status().Update(ctx, account)).To(Succeed())
		works := map[string]string{"cluster-gateway": "True", "cluster-proxy": "True", "managed-serviceaccount": "True"}
		Eventually(available).WithArguments(ctx, member.Name).Should(Equal(works))
		for name := range works {
			printed := expect.Cells(ctx, hub.Config(), "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/"+member.Name+"/managedclusteraddons/"+name)
			Expect(printed).To(And(HaveKeyWithValue("Available", "True"), HaveKeyWithValue("Degraded", "<nil>"), HaveKeyWithValue("Progressing", "<nil>")))
		}
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Namespace: member.Name, Name: "managed-serviceaccount"}, addOn)).To(Succeed())
		Expect(addOn.Status.Namespace).To(Equal(authenticationv1beta1.AccountNamespace))
		Eventually(assigned).Should(Equal(member.Name), "ManagedServiceAccounts in the cluster's namespace work")

		By("deleting one of them")
		Expect(hubClient.Delete(ctx, addOn)).To(Succeed())
		Eventually(available).WithArguments(ctx, member.Name).Should(Equal(works))

		By("losing the heartbeat")
		says(metav1.ConditionUnknown)
		Eventually(available).WithArguments(ctx, member.Name).Should(HaveKeyWithValue("cluster-proxy", "Unknown"))
		says(metav1.ConditionTrue)
		Eventually(available).WithArguments(ctx, member.Name).Should(Equal(works))

		By("installing another add-on of the name")
		expect.CreatedForSpec(ctx, hubClient, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named("cluster-proxy")})
		Eventually(available).WithArguments(ctx, member.Name).ShouldNot(HaveKey("cluster-proxy"))
		Expect(assigned()).To(Equal(member.Name))
		expect.CreatedForSpec(ctx, hubClient, &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: build.Named("managed-serviceaccount")})
		Eventually(assigned).Should(BeEmpty())
	})

	It("has no add-ons on a cluster with a klusterlet", func(ctx SpecContext) {
		b := newBed(ctx, "a")
		cluster := &clusterv1.ManagedCluster{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: b.name("a")}, cluster)).To(Succeed())
		condition(&cluster.Status.Conditions, clusterv1.ConditionAvailable, metav1.ConditionTrue)
		Expect(hubClient.Status().Update(ctx, cluster)).To(Succeed())
		Consistently(available).WithArguments(ctx, b.name("a")).Should(BeEmpty())
	})
})
