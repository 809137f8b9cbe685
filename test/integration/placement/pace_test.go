// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// untracked makes an agent report that the availability of a Work is not trackable.
func untracked(work *placementv1beta1.Work) {
	if meta.FindStatusCondition(work.Status.Conditions, placementv1beta1.ConditionAvailable) == nil {
		meta.SetStatusCondition(&work.Status.Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionAvailable, Status: metav1.ConditionUnknown, Reason: placementv1beta1.ReasonWorkNotTrackable})
	}
}

var _ = Describe("A rolling update", func() {
	It("waits for unavailablePeriodSeconds also at the second change of kinds that are not tracked", func(ctx SpecContext) {
		shop(ctx, "pa-shop")
		members := []string{"pa-1", "pa-2", "pa-3"}
		for _, name := range members {
			join(ctx, name, map[string]string{fleetLabel: "pa"})
			agent(name, untracked)
		}
		paced := func(unavailable intstr.IntOrString) func(*placementv1beta1.PlacementSpec) {
			return func(spec *placementv1beta1.PlacementSpec) {
				none, seconds := intstr.FromInt32(0), 6
				spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &unavailable, MaxSurge: &none, UnavailablePeriodSeconds: &seconds}
			}
		}
		place(ctx, "pa", "pa-shop", paced(intstr.FromString("100%")))
		expectAvailable(ctx, "pa", "0")
		respec(ctx, "pa", paced(intstr.FromInt32(1)))
		changeSettings(ctx, "pa-shop", "green")
		expectAvailable(ctx, "pa", "1")

		bindings, err := bindingsOf(ctx, "pa")
		Expect(err).NotTo(HaveOccurred())
		var times []time.Time
		for _, name := range members {
			Expect(workSays(ctx, name, "pa", "green")()).To(BeTrue())
			c := meta.FindStatusCondition(bindings[name].Status.Conditions, placementv1beta1.ConditionAvailable)
			Expect(c).To(HaveField("Reason", placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable))
			times = append(times, c.LastTransitionTime.Time)
		}
		slices.SortFunc(times, time.Time.Compare)
		for i, after := range times[1:] {
			Expect(after).To(BeTemporally(">=", times[i].Add(5*time.Second)), "whole seconds are stored, and a slow machine only adds to them")
		}
	})
})

var _ = Describe("Snapshots of overrides", func() {
	It("stay while a binding uses them, though the override is edited eleven times and deleted", func(ctx SpecContext) {
		shop(ctx, "pb-shop")
		joinAll(ctx, "pb", nil)
		o := ofSettings("pb-shop", "colours", sets("", "/data/colour", `"first"`))
		create(ctx, o)
		crp := place(ctx, "pb", "pb-shop", nil)
		Eventually(workSays(ctx, "pb-1", "pb", `"colour":"first"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(summary).WithContext(ctx).WithArguments("pb").WithTimeout(soon).WithPolling(often).Should(ContainElement("Available=True/ResourceAvailable"))
		Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, placementv1beta1.PausedAnnotation)))).To(Succeed())

		snapshots := func() ([]string, error) {
			var list placementv1beta1.ResourceOverrideSnapshotList
			err := hub.List(ctx, &list, client.InNamespace("pb-shop"))
			var all []string
			for _, s := range list.Items {
				all = append(all, s.Name)
			}
			return all, err
		}
		for i := range 11 {
			Eventually(snapshots).WithTimeout(soon).WithPolling(often).Should(ContainElement(fmt.Sprintf("colours-%d", i)))
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			o.Spec.Policy.OverrideRules[0] = sets("", "/data/colour", fmt.Sprintf(`"edit %d"`, i+1))
			Expect(hub.Update(ctx, o)).To(Succeed())
		}
		Eventually(snapshots).WithTimeout(soon).WithPolling(often).Should(And(HaveLen(11), ContainElements("colours-0", "colours-11"), Not(ContainElement("colours-1"))))
		Expect(hub.Delete(ctx, o)).To(Succeed())
		Eventually(snapshots).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"colours-0"}))
		Expect(workSays(ctx, "pb-1", "pb", `"colour":"first"`)()).To(BeTrue())

		By("resuming the placement, which no longer needs it")
		Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, placementv1beta1.PausedAnnotation)))).To(Succeed())
		Eventually(workSays(ctx, "pb-1", "pb", "red")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(snapshots).WithTimeout(2 * soon).WithPolling(often).Should(BeEmpty())
	})
})

var _ = Describe("A placement that is re-created after its finalizers were removed", func() {
	It("does not follow the policy snapshot of the previous one", func(ctx SpecContext) {
		only := func(name string) func(*placementv1beta1.PlacementSpec) {
			return func(spec *placementv1beta1.PlacementSpec) {
				spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{name}}
			}
		}
		shop(ctx, "pc-shop")
		joinAll(ctx, "pc", nil, nil)
		before := place(ctx, "pc", "pc-shop", only("pc-1"))
		expectAvailable(ctx, "pc", "0")
		expectOn(ctx, "pc", "pc-1")

		gateway.stop()
		DeferCleanup(func() { gateway.stop(); gateway = startGateway() })
		Expect(hub.Patch(ctx, before, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(hub.Delete(ctx, before)).To(Succeed())
		after := place(ctx, "pc", "pc-shop", only("pc-2"))
		Expect(after.UID).NotTo(Equal(before.UID))
		gateway = startGateway()
		expectOn(ctx, "pc", "pc-2")
		Eventually(summary).WithContext(ctx).WithArguments("pc").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
		bindings, err := bindingsOf(ctx, "pc")
		Expect(err).NotTo(HaveOccurred())
		policy := policySnapshot(ctx, bindings["pc-2"].Spec.SchedulingPolicySnapshotName)
		Expect(policy.OwnerReferences).To(ContainElement(HaveField("UID", after.UID)))
		Expect(policy.Status.TargetClusters).To(ContainElement(HaveField("ClusterName", "pc-2")))
	})
})
