// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// selecting creates a placement with these terms on the spec's members.
func selecting(ctx context.Context, spec, name string, terms ...placementv1beta1.ResourceSelectorTerm) {
	GinkgoHelper()
	place(ctx, name, "", func(s *placementv1beta1.PlacementSpec) {
		s.ResourceSelectors = terms
		s.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{spec + "-1"}}
	})
}

var _ = Describe("Resource selectors", func() {
	It("select by kind, by name or by labels, but not by both", func(ctx SpecContext) {
		joinAll(ctx, "ka", nil)
		class := func(name, tier string) {
			create(ctx, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tier": tier}},
				Spec: networkingv1.IngressClassSpec{Controller: "example.com/" + name}})
		}
		class("ka-inside", "inside")
		class("ka-outside", "outside")
		term := placementv1beta1.ResourceSelectorTerm{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"}
		byName, byLabels := term, term
		byName.Name = "ka-inside"
		byLabels.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "outside"}}
		for name, c := range map[string]struct {
			term placementv1beta1.ResourceSelectorTerm
			want []string
		}{
			"ka-kind":   {term, []string{"IngressClass/ka-inside", "IngressClass/ka-outside"}},
			"ka-name":   {byName, []string{"IngressClass/ka-inside"}},
			"ka-labels": {byLabels, []string{"IngressClass/ka-outside"}},
		} {
			selecting(ctx, "ka", name, c.term)
			expectAvailable(ctx, name, "0")
			work, err := workOf(ctx, "ka-1", name)
			Expect(err).NotTo(HaveOccurred())
			Expect(kindsIn(work)).To(Equal(c.want))
		}

		both := byLabels
		both.Name = "ka-inside"
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "ka-both"}}
		crp.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{both}
		Expect(hub.Create(ctx, crp)).To(And(Satisfy(apierrors.IsInvalid),
			MatchError(ContainSubstring("name and labelSelector are mutually exclusive in a resource selector"))))
	})
})

var _ = Describe("A member with a failing workload", func() {
	It("does not block its other placed resources", func(ctx SpecContext) {
		shop(ctx, "kb-shop")
		join(ctx, "kb-1", map[string]string{fleetLabel: "kb"})
		join(ctx, "kb-2", map[string]string{fleetLabel: "kb"})
		agent("kb-2")
		two := intstr.FromInt32(2) // One of them is unavailable anyway.
		place(ctx, "kb", "kb-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &two}
		})
		says := func(status metav1.ConditionStatus, reason string) {
			GinkgoHelper()
			Eventually(func() error {
				work, err := workOf(ctx, "kb-1", "kb")
				if err != nil {
					return err
				}
				settle(work, placementv1beta1.ReasonAllManifestsApplied, reason)
				meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
					Type: placementv1beta1.ConditionAvailable, Status: status, Reason: reason, ObservedGeneration: work.Generation})
				return hub.Status().Update(ctx, work)
			}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		}

		By("reporting the Pod of the Deployment that does not start")
		says(metav1.ConditionFalse, "SomeManifestsAreNotAvailable")
		Eventually(summary).WithContext(ctx).WithArguments("kb").WithTimeout(soon).WithPolling(often).Should(ContainElements(
			"Applied=True/ApplySucceeded", "Available=False/ResourceNotAvailableYet"))
		changeSettings(ctx, "kb-shop", "green")
		for _, member := range []string{"kb-1", "kb-2"} {
			Eventually(workSays(ctx, member, "kb", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		}

		By("reporting that its workload is not observed there, as for a Job")
		says(metav1.ConditionTrue, placementv1beta1.ReasonWorkNotTrackable)
		expectAvailable(ctx, "kb", "1")
	})
})

var _ = Describe("The hub", func() {
	It("is reachable as a cluster, within its RBAC", func(ctx SpecContext) {
		create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "kc-author"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{placementv1beta1.GroupName}, Resources: []string{"clusterresourceplacements"}, Verbs: []string{"create", "get", "list", "delete"}}}})
		create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "kc-author"},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "kc-author"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "kc-ada"}}})
		as := func(user string) client.Client {
			config := rest.CopyConfig(hubConf)
			config.Impersonate.UserName = user
			c, err := client.New(config, client.Options{Scheme: scheme})
			Expect(err).NotTo(HaveOccurred())
			return c
		}
		crp := func() *placementv1beta1.ClusterResourcePlacement {
			p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "kc"}}
			p.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "kc-shop"}}
			return p
		}
		Eventually(func() error { return as("kc-ada").Create(ctx, crp(), client.DryRunAll) }).WithTimeout(soon).WithPolling(often).Should(Succeed())
		Expect(as("kc-ada").List(ctx, &placementv1beta1.ClusterResourcePlacementList{})).To(Succeed())
		Expect(apierrors.IsForbidden(as("kc-bob").Create(ctx, crp(), client.DryRunAll))).To(BeTrue())
		Expect(apierrors.IsForbidden(as("kc-ada").List(ctx, &placementv1beta1.ClusterResourceSnapshotList{}))).To(BeTrue(), "snapshots contain Secrets")
	})
})

var _ = Describe("A placement with statusReportingScope NamespaceAccessible", func() {
	It("has a copy of its status there, which the gateway restores and deletes with the placement", func(ctx SpecContext) {
		shop(ctx, "kd-shop")
		joinAll(ctx, "kd", nil)
		crp := place(ctx, "kd", "kd-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.StatusReportingScope = placementv1beta1.NamespaceAccessible
		})
		synced := append([]string{}, allTrue...)
		Eventually(summary).WithContext(ctx).WithArguments("kd").WithTimeout(soon).WithPolling(often).Should(ConsistOf(append(synced, "StatusSynced=True/StatusSyncSucceeded")))
		key := types.NamespacedName{Namespace: "kd-shop", Name: "kd"}
		same := func(g Gomega) {
			copied := &placementv1beta1.ClusterResourcePlacementStatus{}
			g.Expect(hub.Get(ctx, key, copied)).To(Succeed())
			now, err := statusOf(ctx, "kd")
			g.Expect(err).NotTo(HaveOccurred())
			meta.RemoveStatusCondition(&now.Status.Conditions, "ClusterResourcePlacementStatusSynced")
			g.Expect(copied.SourceStatus).To(Equal(now.Status))
			g.Expect(copied.LastUpdatedTime.IsZero()).To(BeFalse())
			g.Expect(metav1.IsControlledBy(copied, now)).To(BeTrue())
		}
		Eventually(same).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("changing the placement")
		changeSettings(ctx, "kd-shop", "green")
		Eventually(func() (string, error) {
			copied := &placementv1beta1.ClusterResourcePlacementStatus{}
			err := hub.Get(ctx, key, copied)
			return copied.SourceStatus.ObservedResourceIndex, err
		}).WithTimeout(soon).WithPolling(often).Should(Equal("1"))

		By("deleting the copy")
		Expect(hub.Delete(ctx, &placementv1beta1.ClusterResourcePlacementStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "kd-shop", Name: "kd"}})).To(Succeed())
		Eventually(same).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("selecting another namespace, which is rejected")
		makeNamespace(ctx, "kd-other")
		respec(ctx, "kd", func(spec *placementv1beta1.PlacementSpec) { spec.ResourceSelectors[0].Name = "kd-other" })
		Eventually(summary).WithContext(ctx).WithArguments("kd").WithTimeout(soon).WithPolling(often).Should(Equal([]string{"Scheduled=False/InvalidResourceSelectors"}))
		respec(ctx, "kd", func(spec *placementv1beta1.PlacementSpec) { spec.ResourceSelectors[0].Name = "kd-shop" })
		Eventually(summary).WithContext(ctx).WithArguments("kd").WithTimeout(soon).WithPolling(often).Should(ContainElement("Available=True/ResourceAvailable"))

		Expect(hub.Delete(ctx, crp)).To(Succeed())
		Eventually(func() bool {
			return apierrors.IsNotFound(hub.Get(ctx, key, &placementv1beta1.ClusterResourcePlacementStatus{}))
		}).WithTimeout(soon).WithPolling(often).Should(BeTrue())
	})
})
