// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Clients of the public API compare the whole status of a placement, except for times and messages of
// conditions.
var _ = Describe("The whole status, as clients compare it", func() {
	type status = placementv1beta1.PlacementStatus

	has := func(generation int64, kind string, is metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: is, Reason: reason, ObservedGeneration: generation}
	}
	expect := func(ctx context.Context, name string, want func(generation int64) status) {
		GinkgoHelper()
		Eventually(func(g Gomega) {
			crp, err := statusOf(ctx, name)
			g.Expect(err).NotTo(HaveOccurred())
			ignored := cmp.Options{
				cmpopts.IgnoreFields(metav1.Condition{}, "Message", "LastTransitionTime"), cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(status{}, "Members", "Available", "Reason", "Message"), // Clients of the reference do not have these.
				cmpopts.SortSlices(func(a, b metav1.Condition) bool { return a.Type < b.Type }),
			}
			g.Expect(cmp.Diff(want(crp.Generation), crp.Status, ignored)).To(BeEmpty(), "-want +got")
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
	}
	inShop := func(namespace string) []placementv1beta1.ResourceIdentifier {
		return []placementv1beta1.ResourceIdentifier{
			{Version: "v1", Kind: "Namespace", Name: namespace},
			{Version: "v1", Kind: "ConfigMap", Name: "settings", Namespace: namespace},
			{Version: "v1", Kind: "Service", Name: "web", Namespace: namespace},
			{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web", Namespace: namespace},
		}
	}

	It("of a placement without clusterNames has a pending schedule", func(ctx SpecContext) {
		shop(ctx, "xn-shop")
		joinAll(ctx, "xn", nil)
		nobody := func(generation int64) status {
			return status{
				ObservedResourceIndex: "0", SelectedResources: inShop("xn-shop"),
				Conditions: []metav1.Condition{has(generation, "ClusterResourcePlacementScheduled", metav1.ConditionUnknown, "SchedulePending")},
			}
		}
		place(ctx, "xn", "xn-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed}
		})
		expect(ctx, "xn", nobody)
		crp, err := statusOf(ctx, "xn")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.Conditions[0].Message).To(ContainSubstring("name the members that it is for"))

		By("naming a member, and removing it again")
		respec(ctx, "xn", func(spec *placementv1beta1.PlacementSpec) { spec.Policy.ClusterNames = []string{"xn-1"} })
		expectAvailable(ctx, "xn", "0")
		respec(ctx, "xn", func(spec *placementv1beta1.PlacementSpec) { spec.Policy.ClusterNames = nil })
		expect(ctx, "xn", nobody)
		expectOn(ctx, "xn")
	})

	It("of an override with an invalid result is Overridden and not WorkSynchronized", func(ctx SpecContext) {
		shop(ctx, "xo-shop")
		joinAll(ctx, "xo", nil)
		create(ctx, ofSettings("xo-shop", "broken", sets("", "/metadata/annotations", `"not a map"`)))
		place(ctx, "xo", "xo-shop", nil)
		expect(ctx, "xo", func(generation int64) status {
			return status{
				ObservedResourceIndex: "0", SelectedResources: inShop("xo-shop"),
				Conditions: []metav1.Condition{
					has(generation, "ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled"),
					has(generation, "ClusterResourcePlacementRolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
					has(generation, "ClusterResourcePlacementOverridden", metav1.ConditionTrue, "OverriddenSucceeded"),
					has(generation, "ClusterResourcePlacementWorkSynchronized", metav1.ConditionFalse, "WorkNotSynchronizedYet"),
				},
				PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{{
					ClusterName: "xo-1", ObservedResourceIndex: "0",
					ApplicableResourceOverrides: []placementv1beta1.NamespacedName{{Namespace: "xo-shop", Name: "broken-0"}},
					Conditions: []metav1.Condition{
						has(generation, "Scheduled", metav1.ConditionTrue, "Scheduled"),
						has(generation, "RolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
						has(generation, "Overridden", metav1.ConditionTrue, "OverriddenSucceeded"),
						has(generation, "WorkSynchronized", metav1.ConditionFalse, "SyncWorkFailed"),
					},
				}},
			}
		})
		bindings, err := bindingsOf(ctx, "xo")
		Expect(err).NotTo(HaveOccurred())
		Expect(bindings["xo-1"].Status.Conditions).To(ContainElement(And(
			HaveField("Type", "WorkSynchronized"), HaveField("Message", ContainSubstring("ConfigMap xo-shop/settings: the overrides result in an object that no API server accepts")))))
	})

	It("stays with a limit of one revision, and a blocked rollout removes nothing from members", func(ctx SpecContext) {
		shop(ctx, "xr-shop")
		join(ctx, "xr-1", map[string]string{fleetLabel: "xr"})
		stop := agent("xr-1")
		place(ctx, "xr", "xr-shop", func(spec *placementv1beta1.PlacementSpec) {
			none := intstr.FromInt32(0)
			spec.RevisionHistoryLimit = new(int32(1))
			spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &none, MaxSurge: &none, UnavailablePeriodSeconds: new(1)}
		})
		expectAvailable(ctx, "xr", "0")
		stop()
		changeSettings(ctx, "xr-shop", "green")
		revisions := func() ([]string, error) {
			var list placementv1beta1.ClusterResourceSnapshotList
			err := hub.List(ctx, &list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "xr"})
			var names []string
			for _, s := range list.Items {
				names = append(names, s.Name)
			}
			return names, err
		}
		Eventually(revisions).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"xr-1-snapshot"}))
		bindings, err := bindingsOf(ctx, "xr")
		Expect(err).NotTo(HaveOccurred())
		Expect(bindings["xr-1"].Spec.ResourceSnapshotName).To(Equal("xr-0-snapshot"), "maxUnavailable 0 holds the only member")
		Expect(workSays(ctx, "xr-1", "xr", "red")()).To(BeTrue())

		By("deleting the Work, which cannot be re-created from its snapshot")
		work, err := workOf(ctx, "xr-1", "xr")
		Expect(err).NotTo(HaveOccurred())
		work.Finalizers = nil
		Expect(hub.Update(ctx, work)).To(Succeed())
		Expect(client.IgnoreNotFound(hub.Delete(ctx, work))).To(Succeed())
		Eventually(workSays(ctx, "xr-1", "xr", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		DeferCleanup(agent("xr-1"))
		expectAvailable(ctx, "xr", "1")
	})

	DescribeTable("of an envelope with an invalid object shows the failed step",
		func(ctx SpecContext, name, object string, placed, member []metav1.Condition, failed []placementv1beta1.FailedResourcePlacement) {
			namespace := name + "-shop"
			shop(ctx, namespace)
			join(ctx, name+"-1", map[string]string{fleetLabel: name})
			create(ctx, &placementv1beta1.ResourceEnvelope{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "envelope"},
				Data:       map[string]placementv1beta1.EnvelopedObject{"entry": {RawExtension: runtime.RawExtension{Raw: []byte(object)}}},
			})
			place(ctx, name, namespace, nil)
			if len(failed) > 0 {
				refusesInEnvelope(ctx, name+"-1", name, failed[0])
			}
			expect(ctx, name, func(generation int64) status {
				of := func(conditions []metav1.Condition) []metav1.Condition {
					conditions = slices.Clone(conditions)
					for i := range conditions {
						conditions[i].ObservedGeneration = generation
					}
					return conditions
				}
				return status{
					ObservedResourceIndex: "0",
					SelectedResources: append(inShop(namespace), placementv1beta1.ResourceIdentifier{
						Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Kind: "ResourceEnvelope", Name: "envelope", Namespace: namespace,
					}),
					Conditions:        of(placed),
					PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{{ClusterName: name + "-1", ObservedResourceIndex: "0", Conditions: of(member), FailedPlacements: failed}},
				}
			})
		},
		Entry("a cluster-scoped object", "xh", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"x"}}`,
			[]metav1.Condition{
				has(0, "ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled"),
				has(0, "ClusterResourcePlacementRolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
				has(0, "ClusterResourcePlacementOverridden", metav1.ConditionTrue, "NoOverrideSpecified"),
				has(0, "ClusterResourcePlacementWorkSynchronized", metav1.ConditionFalse, "WorkNotSynchronizedYet"),
			}, []metav1.Condition{
				has(0, "Scheduled", metav1.ConditionTrue, "Scheduled"),
				has(0, "RolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
				has(0, "Overridden", metav1.ConditionTrue, "NoOverrideSpecified"),
				has(0, "WorkSynchronized", metav1.ConditionFalse, "SyncWorkFailed"),
			}, nil),
		Entry("an object with generateName", "xg", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-","namespace":"xg-shop"}}`,
			[]metav1.Condition{
				has(0, "ClusterResourcePlacementScheduled", metav1.ConditionTrue, "SchedulingPolicyFulfilled"),
				has(0, "ClusterResourcePlacementRolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
				has(0, "ClusterResourcePlacementOverridden", metav1.ConditionTrue, "NoOverrideSpecified"),
				has(0, "ClusterResourcePlacementWorkSynchronized", metav1.ConditionTrue, "WorkSynchronized"),
				has(0, "ClusterResourcePlacementApplied", metav1.ConditionFalse, "ApplyFailed"),
			}, []metav1.Condition{
				has(0, "Scheduled", metav1.ConditionTrue, "Scheduled"),
				has(0, "RolloutStarted", metav1.ConditionTrue, "RolloutStarted"),
				has(0, "Overridden", metav1.ConditionTrue, "NoOverrideSpecified"),
				has(0, "WorkSynchronized", metav1.ConditionTrue, "AllWorkSynced"),
				has(0, "Applied", metav1.ConditionFalse, "NotAllWorkHaveBeenApplied"),
			}, []placementv1beta1.FailedResourcePlacement{{
				ResourceIdentifier: placementv1beta1.ResourceIdentifier{
					Version: "v1", Kind: "ConfigMap", Namespace: "xg-shop",
					Envelope: &placementv1beta1.EnvelopeIdentifier{Name: "envelope", Namespace: "xg-shop", Type: placementv1beta1.ResourceEnvelopeType},
				},
				Condition: has(1, "Applied", metav1.ConditionFalse, "FoundGenerateName"),
			}}),
	)
})

// refusesInEnvelope makes a member report the only object in an envelope like its agent reports such an
// object (test/integration/work: "applies valid manifests beside invalid ones"), and all other
// objects as available.
func refusesInEnvelope(ctx context.Context, member, placement string, failed placementv1beta1.FailedResourcePlacement) {
	GinkgoHelper()
	enveloped := placementv1beta1.EnvelopeWorkName("", placement, *failed.Envelope)
	Eventually(func(g Gomega) {
		var works placementv1beta1.WorkList
		g.Expect(hub.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member)))).To(Succeed())
		g.Expect(works.Items).To(HaveLen(2))
		for i := range works.Items {
			work := &works.Items[i]
			settle(work, placementv1beta1.ReasonAllManifestsApplied, placementv1beta1.ReasonAllManifestsAvailable)
			if work.Name == enveloped {
				no := failed.Condition
				no.LastTransitionTime, no.ObservedGeneration = metav1.Now(), work.Generation
				work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
					Identifier: placementv1beta1.WorkResourceIdentifier{Version: failed.Version, Kind: failed.Kind, Namespace: failed.Namespace}, Conditions: []metav1.Condition{no},
				}}
				no.Reason = placementv1beta1.ReasonSomeManifestsAreNotApplied
				work.Status.Conditions = []metav1.Condition{no}
			}
			g.Expect(hub.Status().Update(ctx, work)).To(Succeed())
		}
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}
