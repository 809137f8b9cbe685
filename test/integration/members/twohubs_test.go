// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package members_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/test/support/env"
)

// firstHub is global so that the suite can collect its artifacts.
var firstHub *hub

var _ = Describe("A cluster that belongs to two hubs", Ordered, Label("matrix"), func() {
	var (
		first, second *hub
		onMember      client.Client
		secondAgent   *env.Process
	)

	// record returns the AppliedWork with that name and fails the spec if there is none.
	record := func(ctx context.Context, name string) placementv1beta1.AppliedWork {
		GinkgoHelper()
		var found placementv1beta1.AppliedWork
		Expect(onMember.Get(ctx, client.ObjectKey{Name: name}, &found)).To(Succeed())
		return found
	}
	// settings returns the member's ConfigMap in a placed namespace.
	settings := func(ctx context.Context, namespace string) func() (map[string]string, error) {
		return func() (map[string]string, error) {
			var found corev1.ConfigMap
			err := onMember.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "settings"}, &found)
			return found.Data, err
		}
	}
	gone := func(ctx context.Context, object client.Object) func() (bool, error) {
		return func() (bool, error) {
			err := onMember.Get(ctx, client.ObjectKeyFromObject(object), object)
			return err != nil, client.IgnoreNotFound(err)
		}
	}
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}

	BeforeAll(func(ctx SpecContext) {
		log.SetLogger(GinkgoLogr)
		first, second = startHubs(ctx)
		firstHub = first
		// The agents outlive the spec that starts them.
		DeferCleanup(func(ctx SpecContext) {
			for _, agent := range second.agents {
				Expect(agent.Stop(ctx)).To(Succeed())
			}
		})
		var err error
		onMember, err = first.Members[0].Cluster.Client(clientgoscheme.AddToScheme, placementv1beta1.AddToScheme)
		Expect(err).NotTo(HaveOccurred())

		first.place(ctx, "shop", "first-shop", "first")
		Eventually(first.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
	})

	It("keeps the first hub's resources when a second hub without a hub name places under the same name, and reports the conflict there", func(ctx SpecContext) {
		ours := record(ctx, "shop-work")
		Expect(ours.Annotations).To(HaveKeyWithValue(clusterv1beta1.AnnotationHub, first.uid(ctx)))

		agent := second.agentOn(ctx, first.Members[0],
			"--namespace=fleet-system-"+hubName, "--account-namespace="+authenticationv1beta1.AccountNamespace+"-"+hubName)
		second.place(ctx, "shop", "second-shop", "second")
		Eventually(second.whyNotApplied(ctx, "shop")).Should(And(ContainSubstring("of another hub"), ContainSubstring("--hub-name")))
		Eventually(second.conditionOf(ctx, "shop", "Applied")).Should(Equal("False"))
		Expect(gone(ctx, namespace("second-shop"))()).To(BeTrue())

		By("deleting the second hub's placement")
		second.kubectl(ctx, "", "delete", "clusterresourceplacement", "shop", "--timeout=60s")
		Eventually(second.asks(ctx, "get", "work", "shop-work", "--namespace="+clusterv1beta1.MemberNamespace(member), "--ignore-not-found", "--output=name")).Should(BeEmpty())
		Expect(agent.Stop(ctx)).To(Succeed())
		Expect(record(ctx, "shop-work").UID).To(Equal(ours.UID))
		Expect(settings(ctx, "first-shop")()).To(HaveKeyWithValue("from", "first"))
	})

	It("applies placements of both hubs with the same name once the second agent has a hub name", func(ctx SpecContext) {
		secondAgent = second.agentOn(ctx, first.Members[0], "--hub-name="+hubName)
		second.place(ctx, "shop", "second-shop", "second")
		Eventually(second.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
		Expect(settings(ctx, "second-shop")()).To(HaveKeyWithValue("from", "second"))
		Expect(settings(ctx, "first-shop")()).To(HaveKeyWithValue("from", "first"))
		Expect(record(ctx, "shop-work").Annotations).To(HaveKeyWithValue(clusterv1beta1.AnnotationHub, first.uid(ctx)))
		theirs := record(ctx, "shop-work."+hubName)
		Expect(theirs.Annotations).To(HaveKeyWithValue(clusterv1beta1.AnnotationHub, second.uid(ctx)))
		Expect(theirs.Spec.WorkName).To(Equal("shop-work"))

		By("re-creating objects deleted by hand, and removing objects no longer placed")
		Expect(onMember.Delete(ctx, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: theirs.Name}})).To(Succeed())
		Eventually(func(g Gomega) {
			var again placementv1beta1.AppliedWork
			g.Expect(onMember.Get(ctx, client.ObjectKey{Name: theirs.Name}, &again)).To(Succeed())
			g.Expect(again.UID).NotTo(Equal(theirs.UID))
			g.Expect(settings(ctx, "second-shop")()).To(HaveKeyWithValue("from", "second"))
		}).Should(Succeed())
		second.place(ctx, "gone", "second-gone", "second")
		Eventually(second.conditionOf(ctx, "gone", "Available")).Should(Equal("True"))
		second.kubectl(ctx, "", "delete", "clusterresourceplacement", "gone", "--timeout=60s")
		Eventually(gone(ctx, namespace("second-gone"))).Should(BeTrue())
		Eventually(gone(ctx, &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "gone-work." + hubName}})).Should(BeTrue())
	})

	It("does not let one hub take over an object that the other placed", func(ctx SpecContext) {
		first.place(ctx, "ours", "of-both", "first")
		Eventually(first.conditionOf(ctx, "ours", "Available")).Should(Equal("True"))
		second.place(ctx, "theirs", "of-both", "second")
		Eventually(second.whyNotApplied(ctx, "theirs")).Should(ContainSubstring(`already owned by another AppliedWork, "ours-work"`))
		second.kubectl(ctx, "", "patch", "clusterresourceplacement", "theirs", "--type=merge",
			`--patch={"spec":{"strategy":{"applyStrategy":{"allowCoOwnership":true}}}}`)
		for _, object := range []string{"namespace/of-both", "configmap/settings"} {
			second.kubectl(ctx, "", "annotate", object, "--namespace=of-both", placementv1beta1.SharedAnnotation+"="+placementv1beta1.SharedAmongPlacements)
		}
		Eventually(second.whyNotApplied(ctx, "theirs")).Should(ContainSubstring("which is of another hub"))
		Expect(settings(ctx, "of-both")()).To(HaveKeyWithValue("from", "first"))
	})

	It("is reachable from both hubs, each with its own account and rights", func(ctx SpecContext) {
		for _, h := range []*hub{first, second} {
			Eventually(h.asks(ctx, "get", "--raw=/apis/cluster.core.oam.dev/v1alpha1/clustergateways/"+member+"/proxy/version")).
				Should(ContainSubstring("gitVersion"))
		}
		for _, suffix := range []string{"", "-" + hubName} {
			accounts := authenticationv1beta1.AccountNamespace + suffix
			Expect(onMember.Get(ctx, client.ObjectKey{Namespace: accounts, Name: "cluster-gateway"}, &corev1.ServiceAccount{})).To(Succeed())
		}
		for _, role := range []string{"fleetgate-impersonate", "fleetgate-impersonate-" + authenticationv1beta1.AccountNamespace + "-" + hubName} {
			Expect(onMember.Get(ctx, client.ObjectKey{Name: role}, &rbacv1.ClusterRole{})).To(Succeed())
		}
	})

	It("leaves one hub without an effect on the other, and keeps placed resources", func(ctx SpecContext) {
		second.kubectl(ctx, "", "delete", "membercluster", member, "--timeout=80s")
		Eventually(second.asks(ctx, "get", "namespace", clusterv1beta1.MemberNamespace(member), "--ignore-not-found", "--output=name")).Should(BeEmpty())
		Expect(settings(ctx, "second-shop")()).To(HaveKeyWithValue("from", "second"))
		Expect(secondAgent.Stop(ctx)).To(Succeed())

		first.kubectl(ctx, "", "patch", "configmap", "settings", "--namespace=first-shop", "--type=merge", `--patch={"data":{"from":"the first, later"}}`)
		Eventually(settings(ctx, "first-shop")).Should(HaveKeyWithValue("from", "the first, later"))
		Eventually(first.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
		Expect(settings(ctx, "of-both")()).To(HaveKeyWithValue("from", "first"))
	})

	It("moves to the second hub manually, with the first hub's resources unchanged", func(ctx SpecContext) {
		before := record(ctx, "shop-work")
		steady := watchSteadiness(ctx, first.Members[0].Cluster, "first-shop", "of-both")
		first.kubectl(ctx, "", "delete", "membercluster", member, "--timeout=80s")
		Expect(first.Members[0].Agent.Stop(ctx)).To(Succeed())

		second.kubectl(ctx, "", "delete", "clusterresourceplacement", "shop", "--timeout=60s")
		second.place(ctx, "shop", "first-shop", "second")
		// The agent that ran here before had its own key.
		second.kubectl(ctx, "", "delete", "clusters.fleet.cattle.io", member, "--namespace=clusters", "--timeout=60s")
		second.agentOn(ctx, first.Members[0])
		Eventually(second.whyNotApplied(ctx, "shop")).Should(ContainSubstring(clusterv1beta1.AnnotationFormerHub + "=" + first.uid(ctx)))
		second.kubectl(ctx, "", "annotate", "membercluster", member, clusterv1beta1.AnnotationFormerHub+"="+first.uid(ctx))

		Eventually(second.conditionOf(ctx, "shop", "Available")).Should(Equal("True"))
		Eventually(settings(ctx, "first-shop")).Should(HaveKeyWithValue("from", "second"))
		after := record(ctx, "shop-work")
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Annotations).To(HaveKeyWithValue(clusterv1beta1.AnnotationHub, second.uid(ctx)))

		By("assigning what the first hub placed under another name to the placement that wants it")
		Eventually(second.conditionOf(ctx, "theirs", "Available")).Should(Equal("True"))
		Expect(settings(ctx, "of-both")()).To(HaveKeyWithValue("from", "second"))
		Expect(steady.found()).To(BeEmpty())
	})
})
