// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// onMembersOf selects by the label region; "" selects every member.
func onMembersOf(region string) *placementv1beta1.ClusterSelector {
	selector := &placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}}
	if region != "" {
		selector.ClusterSelectorTerms = []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}},
		}
	}
	return selector
}

// sets is a rule that sets a value on members of a region.
func sets(region, path, value string) placementv1beta1.OverrideRule {
	return placementv1beta1.OverrideRule{
		ClusterSelector: onMembersOf(region), OverrideType: placementv1beta1.JSONPatchOverrideType,
		JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{
			{Operator: placementv1beta1.JSONPatchAdd, Path: path, Value: apiextensionsv1.JSON{Raw: []byte(value)}},
		},
	}
}

// ofSettings is an override of a shop's ConfigMap.
func ofSettings(namespace, name string, rules ...placementv1beta1.OverrideRule) *placementv1beta1.ResourceOverride {
	o := &placementv1beta1.ResourceOverride{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	o.Spec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "ConfigMap", Name: "settings"}}
	o.Spec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: rules}
	return o
}

var _ = Describe("Overrides", func() {
	overridden := func(ctx context.Context, placement string) func() (string, error) {
		return func() (string, error) {
			all, err := summary(ctx, placement)
			return strings.Join(all, " "), err
		}
	}
	relabel := func(ctx context.Context, name, region string) {
		GinkgoHelper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"region":%q}}}`, region))
		Expect(hub.Patch(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch)).To(Succeed())
	}

	It("change resources on some members, follow labels, and are reverted when they are deleted", func(ctx SpecContext) {
		shop(ctx, "o-shop")
		for name, region := range map[string]string{"o-1": "eu", "o-2": "us"} {
			join(ctx, name, map[string]string{fleetLabel: "o", "region": region})
			agent(name)
		}
		place(ctx, "o", "o-shop", nil)
		expectAvailable(ctx, "o", "0")

		By("overriding the ConfigMap in one region")
		o := ofSettings("o-shop", "colours", sets("eu", "/data/colour", `"${MEMBER-CLUSTER-NAME} in ${MEMBER-CLUSTER-LABEL-KEY-region}"`))
		create(ctx, o)
		Eventually(workSays(ctx, "o-1", "o", `"colour":"o-1 in eu"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(overridden(ctx, "o")).WithTimeout(soon).WithPolling(often).Should(
			And(ContainSubstring("Overridden=True/OverriddenSucceeded"), ContainSubstring("Available=True/ResourceAvailable")))
		Expect(workSays(ctx, "o-2", "o", "in us")()).To(BeFalse())
		bindings, err := bindingsOf(ctx, "o")
		Expect(err).NotTo(HaveOccurred())
		Expect(bindings["o-1"].Spec.ResourceOverrideSnapshots).To(Equal([]placementv1beta1.NamespacedName{{Namespace: "o-shop", Name: "colours-0"}}))
		Expect(bindings["o-2"].Spec.ResourceOverrideSnapshots).To(BeEmpty())
		crp, err := statusOf(ctx, "o")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.PlacementStatuses[0].ApplicableResourceOverrides).To(Equal([]placementv1beta1.NamespacedName{{Namespace: "o-shop", Name: "colours-0"}}))

		By("moving a member into the region")
		relabel(ctx, "o-2", "eu")
		Eventually(workSays(ctx, "o-2", "o", `"colour":"o-2 in eu"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())

		By("changing the override, which creates another snapshot of it")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		o.Spec.Policy.OverrideRules[0] = sets("", "/data/colour", `"of ${MEMBER-CLUSTER-LABEL-KEY-region}"`)
		Expect(hub.Update(ctx, o)).To(Succeed())
		Eventually(workSays(ctx, "o-1", "o", `"colour":"of eu"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		relabel(ctx, "o-1", "us")
		Eventually(workSays(ctx, "o-1", "o", `"colour":"of us"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())

		By("deleting the override")
		Expect(hub.Delete(ctx, o)).To(Succeed())
		for _, name := range []string{"o-1", "o-2"} {
			Eventually(workSays(ctx, name, "o", "red")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		}
		expectAvailable(ctx, "o", "0")
	})

	It("exclude resources from members, and a namespace with its contents", func(ctx SpecContext) {
		shop(ctx, "p-shop")
		join(ctx, "p-1", map[string]string{fleetLabel: "p"})
		agent("p-1")
		o := &placementv1beta1.ClusterResourceOverride{ObjectMeta: metav1.ObjectMeta{Name: "p-nothing"}}
		o.Spec.ClusterResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "p-shop"}}
		o.Spec.Policy = &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{
			{ClusterSelector: onMembersOf(""), OverrideType: placementv1beta1.DeleteOverrideType},
		}}
		create(ctx, o)
		place(ctx, "p", "p-shop", nil)
		Eventually(overridden(ctx, "p")).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("Available=True"))
		work, err := workOf(ctx, "p-1", "p")
		Expect(err).NotTo(HaveOccurred())
		Expect(work.Spec.Workload.Manifests).To(BeEmpty())
	})

	It("of a ResourcePlacement are reported by it if their scope is Cluster", func(ctx SpecContext) {
		shop(ctx, "os-shop")
		join(ctx, "os-1", map[string]string{fleetLabel: "os"})
		agent("os-1")
		placeIn(ctx, "os-shop", "os-settings", "os")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments("os-shop", "os-settings").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
		message := func() (string, error) {
			rp := &placementv1beta1.ResourcePlacement{}
			err := hub.Get(ctx, types.NamespacedName{Namespace: "os-shop", Name: "os-settings"}, rp)
			c := meta.FindStatusCondition(rp.Status.Conditions, rp.ConditionType(placementv1beta1.ConditionOverridden))
			if c == nil {
				return "", err
			}
			return c.Message, err
		}

		o := ofSettings("os-shop", "colours", sets("", "/data/colour", `"blue"`))
		o.Spec.Placement = &placementv1beta1.PlacementRef{Name: "os-settings"}
		create(ctx, o)
		Eventually(message).WithTimeout(soon).WithPolling(often).Should(And(ContainSubstring(`ResourceOverride "colours" has no effect`), ContainSubstring("scope Namespaced")))

		By("creating it again with the scope")
		Expect(hub.Delete(ctx, o)).To(Succeed())
		o = ofSettings("os-shop", "colours-again", sets("", "/data/colour", `"blue"`))
		o.Spec.Placement = &placementv1beta1.PlacementRef{Name: "os-settings", Scope: apiextensionsv1.NamespaceScoped}
		create(ctx, o)
		Eventually(message).WithTimeout(soon).WithPolling(often).Should(And(Not(ContainSubstring("no effect")), ContainSubstring("have been applied")))
	})

	It("that do not fit keep the member unchanged, and report the reason", func(ctx SpecContext) {
		shop(ctx, "q-shop")
		join(ctx, "q-1", map[string]string{fleetLabel: "q"})
		agent("q-1")
		place(ctx, "q", "q-shop", nil)
		expectAvailable(ctx, "q", "0")

		create(ctx, ofSettings("q-shop", "colours", sets("", "/data/colour", `"${MEMBER-CLUSTER-LABEL-KEY-region}"`)))
		Eventually(overridden(ctx, "q")).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("Overridden=False/OverriddenFailed"))
		bindings, err := bindingsOf(ctx, "q")
		Expect(err).NotTo(HaveOccurred())
		b := bindings["q-1"]
		Expect(b.Status.Conditions).To(ContainElement(And(
			HaveField("Type", "Overridden"),
			HaveField("Message", ContainSubstring(`ConfigMap q-shop/settings: override snapshot "q-shop/colours-0": add /data/colour: member "q-1" has no label "region"`)),
		)))
		Expect(workSays(ctx, "q-1", "q", "red")()).To(BeTrue())

		By("giving the member the label")
		relabel(ctx, "q-1", "eu")
		Eventually(workSays(ctx, "q-1", "q", `"colour":"eu"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(overridden(ctx, "q")).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("Available=True"))
	})

	It("with a selector that cannot be read are reported, and keep only their own placements unchanged", func(ctx SpecContext) {
		for _, name := range []string{"td", "te"} {
			shop(ctx, name+"-shop")
			joinAll(ctx, name, nil)
		}
		bad := sets("", "/data/colour", `"blue"`)
		bad.ClusterSelector.ClusterSelectorTerms = []placementv1beta1.ClusterSelectorTerm{
			{LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "region", Operator: "Like"}}}},
		}
		o := ofSettings("td-shop", "unreadable", bad)
		create(ctx, o)
		place(ctx, "td", "td-shop", nil)
		place(ctx, "te", "te-shop", nil)
		expectAvailable(ctx, "te", "0")
		Eventually(saidOf(ctx, "td", "td-1", placementv1beta1.ConditionOverridden)).WithTimeout(soon).WithPolling(often).Should(
			ContainSubstring(`override snapshot "td-shop/unreadable-0", rule 0: reading clusterSelector: "Like" is not a valid label selector operator`))

		By("correcting it")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		o.Spec.Policy.OverrideRules[0] = sets("", "/data/colour", `"blue"`)
		Expect(hub.Update(ctx, o)).To(Succeed())
		Eventually(workSays(ctx, "td-1", "td", `"colour":"blue"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
	})

	It("keep ten snapshots, one of which is the latest", func(ctx SpecContext) {
		shop(ctx, "r-shop")
		o := ofSettings("r-shop", "colours", sets("", "/data/colour", `"0"`))
		create(ctx, o)
		snapshots := func() ([]string, error) {
			var list placementv1beta1.ResourceOverrideSnapshotList
			err := hub.List(ctx, &list, client.InNamespace("r-shop"))
			var all []string
			for _, s := range list.Items {
				all = append(all, fmt.Sprintf("%s %s", s.Name, s.Labels[placementv1beta1.IsLatestSnapshotLabel]))
			}
			return all, err
		}
		for i := range 12 {
			Eventually(snapshots).WithTimeout(soon).WithPolling(often).Should(ContainElement(fmt.Sprintf("colours-%d true", i)))
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			o.Spec.Policy.OverrideRules[0] = sets("", "/data/colour", fmt.Sprintf(`"%d"`, i+1))
			Expect(hub.Update(ctx, o)).To(Succeed())
		}
		Eventually(snapshots).WithTimeout(soon).WithPolling(often).Should(ConsistOf(
			"colours-3 false", "colours-4 false", "colours-5 false", "colours-6 false", "colours-7 false",
			"colours-8 false", "colours-9 false", "colours-10 false", "colours-11 false", "colours-12 true"))
	})
})
