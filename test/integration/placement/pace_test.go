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
		shop(ctx, "ta-shop")
		members := []string{"ta-1", "ta-2", "ta-3"}
		for _, name := range members {
			join(ctx, name, map[string]string{fleetLabel: "ta"})
			agent(name, untracked)
		}
		paced := func(unavailable intstr.IntOrString) func(*placementv1beta1.PlacementSpec) {
			return func(spec *placementv1beta1.PlacementSpec) {
				none, seconds := intstr.FromInt32(0), 6
				spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &unavailable, MaxSurge: &none, UnavailablePeriodSeconds: &seconds}
			}
		}
		place(ctx, "ta", "ta-shop", paced(intstr.FromString("100%")))
		expectAvailable(ctx, "ta", "0")
		respec(ctx, "ta", paced(intstr.FromInt32(1)))
		changeSettings(ctx, "ta-shop", "green")
		expectAvailable(ctx, "ta", "1")

		bindings, err := bindingsOf(ctx, "ta")
		Expect(err).NotTo(HaveOccurred())
		var times []time.Time
		for _, name := range members {
			Expect(workSays(ctx, name, "ta", "green")()).To(BeTrue())
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
		shop(ctx, "tb-shop")
		joinAll(ctx, "tb", nil)
		o := ofSettings("tb-shop", "colours", sets("", "/data/colour", `"first"`))
		create(ctx, o)
		crp := place(ctx, "tb", "tb-shop", nil)
		Eventually(workSays(ctx, "tb-1", "tb", `"colour":"first"`)).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(summary).WithContext(ctx).WithArguments("tb").WithTimeout(soon).WithPolling(often).Should(ContainElement("Available=True/ResourceAvailable"))
		Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, placementv1beta1.PausedAnnotation)))).To(Succeed())

		snapshots := func() ([]string, error) {
			var list placementv1beta1.ResourceOverrideSnapshotList
			err := hub.List(ctx, &list, client.InNamespace("tb-shop"))
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
		Expect(workSays(ctx, "tb-1", "tb", `"colour":"first"`)()).To(BeTrue())

		By("resuming the placement, which no longer needs it")
		Expect(hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType,
			fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, placementv1beta1.PausedAnnotation)))).To(Succeed())
		Eventually(workSays(ctx, "tb-1", "tb", "red")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
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
		shop(ctx, "tc-shop")
		joinAll(ctx, "tc", nil, nil)
		before := place(ctx, "tc", "tc-shop", only("tc-1"))
		expectAvailable(ctx, "tc", "0")
		expectOn(ctx, "tc", "tc-1")

		gateway.stop()
		DeferCleanup(func() { gateway.stop(); gateway = startGateway() })
		Expect(hub.Patch(ctx, before, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Expect(hub.Delete(ctx, before)).To(Succeed())
		after := place(ctx, "tc", "tc-shop", only("tc-2"))
		Expect(after.UID).NotTo(Equal(before.UID))
		gateway = startGateway()
		expectOn(ctx, "tc", "tc-2")
		Eventually(summary).WithContext(ctx).WithArguments("tc").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
		bindings, err := bindingsOf(ctx, "tc")
		Expect(err).NotTo(HaveOccurred())
		policy := policySnapshot(ctx, bindings["tc-2"].Spec.SchedulingPolicySnapshotName)
		Expect(policy.OwnerReferences).To(ContainElement(HaveField("UID", after.UID)))
		Expect(policy.Status.TargetClusters).To(ContainElement(HaveField("ClusterName", "tc-2")))
	})
})
