// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// reportManifests reports each manifest of a Work in its status, as an agent does.
func reportManifests(work *placementv1beta1.Work) {
	work.Status.ManifestConditions = nil
	for key := range manifestsOf(work) {
		kind, name, _ := strings.Cut(key, " ")
		namespace, name, _ := strings.Cut(name, "/")
		id := placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: kind, Namespace: namespace, Name: name}
		if kind == "Deployment" {
			id.Group = "apps"
		}
		work.Status.ManifestConditions = append(work.Status.ManifestConditions, placementv1beta1.ManifestCondition{Identifier: id, Conditions: []metav1.Condition{}})
	}
}

// reportingMembers joins members in region eu whose agents report the manifests that they have.
func reportingMembers(ctx context.Context, spec string, n int) []string {
	GinkgoHelper()
	var names []string
	for i := range n {
		name := fmt.Sprintf("%s-%d", spec, i+1)
		join(ctx, name, map[string]string{fleetLabel: spec, "region": "eu"})
		agent(name, reportManifests)
		names = append(names, name)
	}
	return names
}

// setRegion labels members one after the other, as kubectl does.
func setRegion(ctx context.Context, region string, members ...string) {
	GinkgoHelper()
	for _, name := range members {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{"region":%q}}}`, region))
		member := &clusterv1beta1.MemberCluster{}
		member.Name = name
		Expect(hub.Patch(ctx, member, patch)).To(Succeed())
	}
}

// without names the members that do not get the object.
func without(ctx context.Context, placement, object string, members []string) ([]string, error) {
	var all []string
	for _, name := range members {
		kinds, err := kindsOn(ctx, name, placement)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(kinds, object) {
			all = append(all, name)
		}
	}
	return all, nil
}

// reportedOn names the members whose agents have reported the object.
func reportedOn(ctx context.Context, placement, object string, members []string) ([]string, error) {
	var all []string
	for _, name := range members {
		work, err := workOf(ctx, name, placement)
		if err != nil {
			return nil, err
		}
		for _, m := range work.Status.ManifestConditions {
			if m.Identifier.Kind+"/"+m.Identifier.Name == object {
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// confirm sets the annotation that the condition RemovalSuspended names.
func confirm(ctx context.Context, placement string) {
	GinkgoHelper()
	message, err := said(ctx, placement, placementv1beta1.ConditionRemovalSuspended)
	Expect(err).NotTo(HaveOccurred())
	_, token, found := strings.Cut(message, placementv1beta1.ConfirmRemovalAnnotation+"=")
	Expect(found).To(BeTrue(), message)
	crp, err := statusOf(ctx, placement)
	Expect(err).NotTo(HaveOccurred())
	Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, placementv1beta1.ConfirmRemovalAnnotation, token)))).To(Succeed())
}

var _ = Describe("An override of type Delete", func() {
	const settings = "ConfigMap/settings"
	deletesIn := func(namespace, name, region string) *placementv1beta1.ResourceOverride {
		return ofSettings(namespace, name, placementv1beta1.OverrideRule{ClusterSelector: onMembersOf(region), OverrideType: placementv1beta1.DeleteOverrideType})
	}
	start := func(ctx context.Context, spec string, n int) []string {
		GinkgoHelper()
		shop(ctx, spec+"-shop")
		members := reportingMembers(ctx, spec, n)
		place(ctx, spec, spec+"-shop", nil)
		expectAvailable(ctx, spec, "0")
		Eventually(reportedOn).WithContext(ctx).WithArguments(spec, settings, members).WithTimeout(soon).WithPolling(often).Should(Equal(members))
		return members
	}

	It("waits for a confirmation when labels of many members change, so that it deletes there", func(ctx SpecContext) {
		members := start(ctx, "od", 6)
		create(ctx, deletesIn("od-shop", "retired", "retired"))
		Eventually(func() error {
			return hub.Get(ctx, types.NamespacedName{Namespace: "od-shop", Name: "retired-0"}, &placementv1beta1.ResourceOverrideSnapshot{})
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("labelling five of six members")
		setRegion(ctx, "retired", members[:5]...)
		Eventually(said).WithContext(ctx).WithArguments("od", placementv1beta1.ConditionRemovalSuspended).WithTimeout(soon).WithPolling(often).Should(And(
			ContainSubstring("5 of 6 members: od-1, od-2, od-3, od-4, od-5."), ContainSubstring("kubectl fleetgate confirm od")))
		Expect(without(ctx, "od", settings, members)).To(BeEmpty())

		By("labelling the sixth, which needs another confirmation")
		setRegion(ctx, "retired", members[5])
		Eventually(said).WithContext(ctx).WithArguments("od", placementv1beta1.ConditionRemovalSuspended).WithTimeout(2 * soon).WithPolling(often).Should(ContainSubstring("6 of 6 members"))
		Expect(without(ctx, "od", settings, members)).To(BeEmpty())
		confirm(ctx, "od")
		Eventually(without).WithContext(ctx).WithArguments("od", settings, members).WithTimeout(2 * soon).WithPolling(often).Should(Equal(members))
		Eventually(said).WithContext(ctx).WithArguments("od", placementv1beta1.ConditionRemovalSuspended).WithTimeout(2 * soon).WithPolling(often).Should(BeEmpty())
		Eventually(summary).WithContext(ctx).WithArguments("od").WithTimeout(soon).WithPolling(often).Should(ContainElement("Available=True/ResourceAvailable"))
	})

	It("keeps what it has when the labels are set again", func(ctx SpecContext) {
		members := start(ctx, "oe", 5)
		create(ctx, deletesIn("oe-shop", "retired", "retired"))
		Eventually(func() error {
			return hub.Get(ctx, types.NamespacedName{Namespace: "oe-shop", Name: "retired-0"}, &placementv1beta1.ResourceOverrideSnapshot{})
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		setRegion(ctx, "retired", members...)
		Eventually(said).WithContext(ctx).WithArguments("oe", placementv1beta1.ConditionRemovalSuspended).WithTimeout(soon).WithPolling(often).Should(ContainSubstring("5 of 5 members"))
		setRegion(ctx, "eu", members...)
		Eventually(said).WithContext(ctx).WithArguments("oe", placementv1beta1.ConditionRemovalSuspended).WithTimeout(2 * soon).WithPolling(often).Should(BeEmpty())
		expectAvailable(ctx, "oe", "0")
		Expect(without(ctx, "oe", settings, members)).To(BeEmpty())

		By("labelling one member, which is no large removal")
		setRegion(ctx, "retired", members[0])
		Eventually(without).WithContext(ctx).WithArguments("oe", settings, members).WithTimeout(soon).WithPolling(often).Should(Equal(members[:1]))
	})

	It("deletes without a confirmation on the members that it selects when it is written", func(ctx SpecContext) {
		members := start(ctx, "of", 5)
		o := deletesIn("of-shop", "retired", "retired")
		create(ctx, o)
		Eventually(func() error {
			return hub.Get(ctx, types.NamespacedName{Namespace: "of-shop", Name: "retired-0"}, &placementv1beta1.ResourceOverrideSnapshot{})
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		o.Spec.Policy.OverrideRules[0].ClusterSelector = onMembersOf("eu")
		Expect(hub.Update(ctx, o)).To(Succeed())
		Eventually(without).WithContext(ctx).WithArguments("of", settings, members).WithTimeout(soon).WithPolling(often).Should(Equal(members))
		Expect(said(ctx, "of", placementv1beta1.ConditionRemovalSuspended)).To(BeEmpty())
	})
})
