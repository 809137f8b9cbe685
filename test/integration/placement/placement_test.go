// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var _ = Describe("A ClusterResourcePlacement", func() {
	It("delivers a namespace with its contents to all members, and reports it", func(ctx SpecContext) {
		shop(ctx, "a-shop")
		for _, name := range []string{"a-1", "a-2"} {
			join(ctx, name, map[string]string{fleetLabel: "a"})
			agent(name)
		}
		place(ctx, "a", "a-shop", nil)
		expectAvailable(ctx, "a", "0")

		By("checking the Works")
		bindings, err := bindingsOf(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"a-1", "a-2"} {
			work, err := workOf(ctx, name, "a")
			Expect(err).NotTo(HaveOccurred())
			Expect(kindsIn(work)).To(Equal([]string{"Namespace/a-shop", "ConfigMap/settings", "Service/web", "Deployment/web"}))
			Expect(work.Labels).To(Equal(map[string]string{
				"kubernetes-fleet.io/parent-CRP": "a", "kubernetes-fleet.io/parent-resource-binding": bindings[name].Name,
				"kubernetes-fleet.io/parent-resource-snapshot-index": "0",
			}))
			Expect(work.Annotations).To(HaveKeyWithValue("kubernetes-fleet.io/parent-resource-snapshot-name", "a-0-snapshot"))
			Expect(work.Annotations).To(HaveKeyWithValue("fleetgate.io/deletion-cause", "None"))
			Expect(bindings[name].Name).To(MatchRegexp("^a-" + name + "-[0-9a-f]{8}$"))
			Expect(bindings[name].Finalizers).To(ConsistOf("kubernetes-fleet.io/scheduler-crb-cleanup", "kubernetes-fleet.io/work-cleanup"))
		}

		By("checking the whole status")
		crp, err := statusOf(ctx, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Finalizers).To(ConsistOf("kubernetes-fleet.io/crp-cleanup", "kubernetes-fleet.io/scheduler-cleanup"))
		member := func(name string) placementv1beta1.PerClusterPlacementStatus {
			condition := func(kind, reason string) metav1.Condition {
				return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, ObservedGeneration: 1}
			}
			return placementv1beta1.PerClusterPlacementStatus{ClusterName: name, ObservedResourceIndex: "0", Conditions: []metav1.Condition{
				condition("Scheduled", "Scheduled"), condition("RolloutStarted", "RolloutStarted"), condition("Overridden", "NoOverrideSpecified"),
				condition("WorkSynchronized", "AllWorkSynced"), condition("Applied", "AllWorkHaveBeenApplied"), condition("Available", "AllWorkAreAvailable"),
			}}
		}
		want := placementv1beta1.PlacementStatus{
			ObservedResourceIndex: "0",
			SelectedResources: []placementv1beta1.ResourceIdentifier{
				{Version: "v1", Kind: "Namespace", Name: "a-shop"},
				{Version: "v1", Kind: "ConfigMap", Name: "settings", Namespace: "a-shop"},
				{Version: "v1", Kind: "Service", Name: "web", Namespace: "a-shop"},
				{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web", Namespace: "a-shop"},
			},
			PlacementStatuses: []placementv1beta1.PerClusterPlacementStatus{member("a-1"), member("a-2")},
			Members:           "2/2", Available: metav1.ConditionTrue,
		}
		Expect(cmp.Diff(want, crp.Status, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime", "Message"),
			cmpopts.IgnoreFields(placementv1beta1.PlacementStatus{}, "Conditions"))).To(BeEmpty())

		By("checking the policy snapshot and the events")
		policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{}
		Expect(hub.Get(ctx, types.NamespacedName{Name: "a-0"}, policy)).To(Succeed())
		Expect(policy.Status.ObservedCRPGeneration).To(BeEquivalentTo(1))
		Expect(policy.Status.TargetClusters).To(Equal([]placementv1beta1.ClusterDecision{
			{ClusterName: "a-1", Selected: true, Reason: `Successfully scheduled resources for placement in "a-1": picked by scheduling policy`},
			{ClusterName: "a-2", Selected: true, Reason: `Successfully scheduled resources for placement in "a-2": picked by scheduling policy`},
		}))
		Eventually(func() ([]string, error) {
			var list eventsv1.EventList
			err := hub.List(ctx, &list)
			var reasons []string
			for _, e := range list.Items {
				if e.Regarding.Name == "a" {
					reasons = append(reasons, e.Reason)
				}
			}
			return reasons, err
		}).WithTimeout(soon).Should(ContainElements("PlacementRolloutStarted", "PlacementWorkSynchronized", "PlacementApplied", "PlacementAvailable", "PlacementRolloutCompleted"))
	})

	It("follows changes of selected resources", func(ctx SpecContext) {
		shop(ctx, "b-shop")
		join(ctx, "b-1", map[string]string{fleetLabel: "b"})
		agent("b-1")
		place(ctx, "b", "b-shop", nil)
		expectAvailable(ctx, "b", "0")

		changeSettings(ctx, "b-shop", "green")
		Eventually(workSays(ctx, "b-1", "b", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		expectAvailable(ctx, "b", "1")

		By("adding an object to the namespace")
		Expect(hub.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "b-shop", Name: "key"}})).To(Succeed())
		expectAvailable(ctx, "b", "2")
		work, err := workOf(ctx, "b-1", "b")
		Expect(err).NotTo(HaveOccurred())
		Expect(kindsIn(work)).To(ContainElement("Secret/key"))

		By("restoring an edited Work")
		work.Spec.Workload.Manifests = work.Spec.Workload.Manifests[:1]
		Expect(hub.Update(ctx, work)).To(Succeed())
		Eventually(workSays(ctx, "b-1", "b", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		expectAvailable(ctx, "b", "2")

		By("keeping exactly one latest snapshot")
		var snapshots placementv1beta1.ClusterResourceSnapshotList
		Expect(hub.List(ctx, &snapshots, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "b"})).To(Succeed())
		Expect(snapshots.Items).To(HaveLen(3))
		for _, s := range snapshots.Items {
			Expect(s.Labels).To(HaveKeyWithValue(placementv1beta1.IsLatestSnapshotLabel, fmt.Sprint(s.Name == "b-2-snapshot")))
		}
	})

	It("adds members that join, and removes those that leave", func(ctx SpecContext) {
		shop(ctx, "c-shop")
		join(ctx, "c-1", map[string]string{fleetLabel: "c"})
		agent("c-1")
		place(ctx, "c", "c-shop", nil)
		expectAvailable(ctx, "c", "0")
		before, err := workOf(ctx, "c-1", "c")
		Expect(err).NotTo(HaveOccurred())

		join(ctx, "c-2", map[string]string{fleetLabel: "c"})
		agent("c-2")
		clusters := func() ([]string, error) {
			crp, err := statusOf(ctx, "c")
			var names []string
			for _, s := range crp.Status.PlacementStatuses {
				names = append(names, s.ClusterName)
			}
			return names, err
		}
		Eventually(clusters).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"c-1", "c-2"}))
		expectAvailable(ctx, "c", "0")

		Expect(hub.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "c-2"}})).To(Succeed())
		Eventually(clusters).WithTimeout(soon).WithPolling(often).Should(Equal([]string{"c-1"}))
		Eventually(func() (int, error) { b, err := bindingsOf(ctx, "c"); return len(b), err }).WithTimeout(soon).WithPolling(often).Should(Equal(1))
		expectAvailable(ctx, "c", "0")

		By("not touching the remaining member")
		after, err := workOf(ctx, "c-1", "c")
		Expect(err).NotTo(HaveOccurred())
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Generation).To(Equal(before.Generation))
	})

	It("continues after a restart of the gateway", func(ctx SpecContext) {
		shop(ctx, "d-shop")
		for _, name := range []string{"d-1", "d-2"} {
			join(ctx, name, map[string]string{fleetLabel: "d"})
			agent(name)
		}
		place(ctx, "d", "d-shop", nil)
		expectAvailable(ctx, "d", "0")

		state := func() string {
			GinkgoHelper()
			var text strings.Builder
			for _, list := range []client.ObjectList{
				&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.ClusterResourceSnapshotList{},
				&placementv1beta1.ClusterSchedulingPolicySnapshotList{}, &placementv1beta1.WorkList{},
			} {
				Expect(hub.List(ctx, list, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "d"})).To(Succeed())
				items, err := meta.ExtractList(list)
				Expect(err).NotTo(HaveOccurred())
				for _, item := range items {
					o := item.(client.Object)
					fmt.Fprintf(&text, "%T %s/%s %s\n", o, o.GetNamespace(), o.GetName(), o.GetResourceVersion())
				}
			}
			crp, err := statusOf(ctx, "d")
			Expect(err).NotTo(HaveOccurred())
			fmt.Fprintf(&text, "crp %s\n", crp.ResourceVersion)
			return text.String()
		}
		before := state()
		gateway.stop()
		gateway = startGateway()
		Consistently(state).WithTimeout(2 * time.Second).Should(Equal(before))

		By("changing resources without a running gateway")
		gateway.stop()
		changeSettings(ctx, "d-shop", "violet")
		Expect(hub.Delete(ctx, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "d-2"}})).To(Succeed())
		gateway = startGateway()
		Eventually(workSays(ctx, "d-1", "d", "violet")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		expectAvailable(ctx, "d", "1")
		Eventually(func() (int, error) { b, err := bindingsOf(ctx, "d"); return len(b), err }).WithTimeout(soon).WithPolling(often).Should(Equal(1))
	})

	It("removes everything when it is deleted, and can be re-created at once", func(ctx SpecContext) {
		shop(ctx, "e-shop")
		join(ctx, "e-1", map[string]string{fleetLabel: "e"})
		stop := agent("e-1")
		crp := place(ctx, "e", "e-shop", nil)
		expectAvailable(ctx, "e", "0")
		stop()

		Expect(hub.Delete(ctx, crp)).To(Succeed())
		Eventually(func() error { _, err := statusOf(ctx, "e"); return client.IgnoreNotFound(err) }).WithTimeout(soon).Should(Succeed())
		Eventually(func() bool {
			work, err := workOf(ctx, "e-1", "e")
			return err == nil && work.DeletionTimestamp != nil
		}).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(func() bool { _, err := statusOf(ctx, "e"); return err != nil }).WithTimeout(soon).WithPolling(often).Should(BeTrue())

		By("creating a placement of the same name while the member still cleans up")
		place(ctx, "e", "e-shop", nil)
		Eventually(summary).WithContext(ctx).WithArguments("e").WithTimeout(soon).WithPolling(often).Should(ContainElement("WorkSynchronized=False/WorkNotSynchronizedYet"))
		work, err := workOf(ctx, "e-1", "e")
		Expect(err).NotTo(HaveOccurred())
		Expect(handle(ctx, work)).To(Succeed())
		agent("e-1")
		expectAvailable(ctx, "e", "0")
	})

	It("reports invalid selectors until they are corrected", func(ctx SpecContext) {
		join(ctx, "f-1", map[string]string{fleetLabel: "f"})
		agent("f-1")
		crp := place(ctx, "f", "kube-system", nil)
		Eventually(summary).WithContext(ctx).WithArguments("f").WithTimeout(soon).WithPolling(often).Should(Equal([]string{"Scheduled=False/InvalidResourceSelectors"}))

		shop(ctx, "f-shop")
		Eventually(func() error {
			Expect(hub.Get(ctx, client.ObjectKeyFromObject(crp), crp)).To(Succeed())
			crp.Spec.ResourceSelectors[0].Name = "f-shop"
			return hub.Update(ctx, crp)
		}).WithTimeout(soon).Should(Succeed())
		expectAvailable(ctx, "f", "0")
	})

	It("places nothing while it selects nothing", func(ctx SpecContext) {
		join(ctx, "g-1", map[string]string{fleetLabel: "g"})
		agent("g-1")
		place(ctx, "g", "g-shop", nil)
		expectAvailable(ctx, "g", "0")
		work, err := workOf(ctx, "g-1", "g")
		Expect(err).NotTo(HaveOccurred())
		Expect(work.Spec.Workload.Manifests).To(BeEmpty())

		shop(ctx, "g-shop")
		Eventually(workSays(ctx, "g-1", "g", "Deployment")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
	})

	It("respects the pace of its strategy", func(ctx SpecContext) {
		shop(ctx, "h-shop")
		members := []string{"h-1", "h-2", "h-3", "h-4"}
		stops := map[string]func(){}
		for _, name := range members {
			join(ctx, name, map[string]string{fleetLabel: "h"})
			stops[name] = agent(name)
		}
		place(ctx, "h", "h-shop", func(spec *placementv1beta1.PlacementSpec) {
			one := intstr.FromInt32(1)
			spec.Strategy.RollingUpdate = &placementv1beta1.RollingUpdateConfig{MaxUnavailable: &one, MaxSurge: &one}
		})
		expectAvailable(ctx, "h", "0")
		for _, stop := range stops {
			stop()
		}
		changeSettings(ctx, "h-shop", "grey")
		moved := func() (int, error) {
			n := 0
			for _, name := range members {
				says, err := workSays(ctx, name, "h", "grey")()
				if err != nil {
					return 0, err
				}
				if says {
					n++
				}
			}
			return n, nil
		}
		Eventually(moved).WithTimeout(soon).WithPolling(often).Should(Equal(1))
		Consistently(moved).WithTimeout(time.Second).Should(Equal(1))
		Eventually(summary).WithContext(ctx).WithArguments("h").WithTimeout(soon).Should(ContainElement("RolloutStarted=False/RolloutNotStartedYet"))
		for _, name := range members {
			agent(name)
		}
		expectAvailable(ctx, "h", "1")
	})

	It("selects the named members, and reports missing ones", func(ctx SpecContext) {
		shop(ctx, "i-shop")
		join(ctx, "i-1", nil)
		agent("i-1")
		place(ctx, "i", "i-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixed, ClusterNames: []string{"i-1", "i-2"}}
		})
		Eventually(summary).WithContext(ctx).WithArguments("i").WithTimeout(soon).WithPolling(often).Should(
			ContainElements("Scheduled=False/SchedulingPolicyUnfulfilled", "Available=True/ResourceAvailable"))
		crp, err := statusOf(ctx, "i")
		Expect(err).NotTo(HaveOccurred())
		Expect(crp.Status.PlacementStatuses).To(HaveLen(2))
		Expect(crp.Status.PlacementStatuses[1].ClusterName).To(BeEmpty())
		Expect(crp.Status.PlacementStatuses[1].Conditions[0].Message).To(Equal(`Specified cluster "i-2" is not found`))

		join(ctx, "i-2", nil)
		agent("i-2")
		expectAvailable(ctx, "i", "0")
	})

	It("reports failed objects of a member", func(ctx SpecContext) {
		shop(ctx, "j-shop")
		join(ctx, "j-1", map[string]string{fleetLabel: "j"})
		place(ctx, "j", "j-shop", nil)
		Eventually(func() error {
			work, err := workOf(ctx, "j-1", "j")
			if err != nil {
				return err
			}
			if controllerutil.AddFinalizer(work, placementv1beta1.WorkCleanupFinalizer) {
				if err := hub.Update(ctx, work); err != nil {
					return err
				}
			}
			failed := metav1.Condition{Type: placementv1beta1.ConditionApplied, Status: metav1.ConditionFalse, Message: "no", LastTransitionTime: metav1.Now()}
			failed.Reason, failed.ObservedGeneration = placementv1beta1.ReasonSomeManifestsAreNotApplied, work.Generation
			work.Status.Conditions = []metav1.Condition{failed}
			failed.Reason, failed.ObservedGeneration = placementv1beta1.ReasonManifestApplyFailed, 0
			work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
				Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Version: "v1", Kind: "ConfigMap", Namespace: "j-shop", Name: "settings"},
				Conditions: []metav1.Condition{failed},
			}}
			return hub.Status().Update(ctx, work)
		}).WithTimeout(soon).Should(Succeed())
		Eventually(func(g Gomega) {
			crp, err := statusOf(ctx, "j")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(brief(crp.Status.Conditions, "ClusterResourcePlacement", crp.Generation)).To(ContainElement("Applied=False/ApplyFailed"))
			g.Expect(crp.Status.PlacementStatuses[0].FailedPlacements).To(HaveLen(1))
			g.Expect(crp.Status.PlacementStatuses[0].FailedPlacements[0].Name).To(Equal("settings"))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())

		By("checking its warning event")
		Eventually(func() ([]string, error) {
			var list eventsv1.EventList
			err := hub.List(ctx, &list)
			var told []string
			for _, e := range list.Items {
				if e.Regarding.Name == "j" && e.Type == corev1.EventTypeWarning {
					told = append(told, e.Reason+": "+e.Note)
				}
			}
			return told, err
		}).WithTimeout(soon).Should(ConsistOf(`PlacementApplyFailed: on member "j-1", ConfigMap j-shop/settings: no`))
	})

	It("reports since when an awaited member has no heartbeat", func(ctx SpecContext) {
		shop(ctx, "js-shop")
		join(ctx, "js-1", map[string]string{fleetLabel: "js"})
		place(ctx, "js", "js-shop", nil)
		applied := saidOf(ctx, "js", "js-1", placementv1beta1.ConditionApplied)
		Eventually(applied).WithTimeout(soon).Should(HaveSuffix("is being applied"))
		heard := func(status metav1.ConditionStatus, reason string) {
			report(ctx, "js-1", func(s *clusterv1beta1.MemberClusterStatus) {
				meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionJoined, Status: status, Reason: reason})
			})
		}
		heard(metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterJoinStateUnknown)
		Eventually(applied).WithTimeout(soon).Should(MatchRegexp(`is being applied, and member "js-1" has had no heartbeat since 20.*Z: see its condition Joined$`))
		heard(metav1.ConditionTrue, clusterv1beta1.ReasonMemberClusterJoined)
		Eventually(applied).WithTimeout(soon).Should(HaveSuffix("is being applied"))
		agent("js-1")
		expectAvailable(ctx, "js", "0")
	})

	It("costs at most five writes of the gateway for a member", func(ctx SpecContext) {
		shop(ctx, "k-shop")
		join(ctx, "k-1", map[string]string{fleetLabel: "k"})
		agent("k-1")
		watcher, err := hub.Watch(ctx, &placementv1beta1.ClusterResourceBindingList{}, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "k"})
		Expect(err).NotTo(HaveOccurred())
		defer watcher.Stop()
		place(ctx, "k", "k-shop", nil)
		expectAvailable(ctx, "k", "0")

		writes := 0
		for quiet := false; !quiet; {
			select {
			case _, open := <-watcher.ResultChan():
				Expect(open).To(BeTrue(), "the watch is open")
				writes++
				Expect(writes).To(BeNumerically("<", 100), "it is written repeatedly")
			case <-time.After(300 * time.Millisecond):
				quiet = true
			}
		}
		work, err := workOf(ctx, "k-1", "k")
		Expect(err).NotTo(HaveOccurred())
		Expect(work.Generation).To(BeEquivalentTo(1))
		Expect(writes+1).To(BeNumerically("<=", 5), "writes of the binding, and the Work's creation")
	})

	It("selects types that are installed later", func(ctx SpecContext) {
		join(ctx, "l-1", map[string]string{fleetLabel: "l"})
		agent("l-1")
		place(ctx, "l", "", func(spec *placementv1beta1.PlacementSpec) {
			spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Group: "example.com", Version: "v1", Kind: "Widget", Name: "one"}}
		})
		Eventually(summary).WithContext(ctx).WithArguments("l").WithTimeout(soon).WithPolling(often).Should(Equal([]string{"Scheduled=False/InvalidResourceSelectors"}))

		later := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
			ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "example.com", Scope: apiextensionsv1.ClusterScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}}},
			},
		}}}
		_, err := envtest.InstallCRDs(hubConf, later)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() {
			if CurrentSpecReport().Failed() {
				Expect(envtest.UninstallCRDs(hubConf, later)).To(Succeed())
			}
		})
		widget := &unstructured.Unstructured{}
		widget.SetAPIVersion("example.com/v1")
		widget.SetKind("Widget")
		widget.SetName("one")
		Expect(hub.Create(ctx, widget)).To(Succeed())
		Eventually(workSays(ctx, "l-1", "l", "Widget")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		Eventually(summary).WithContext(ctx).WithArguments("l").WithTimeout(soon).WithPolling(often).Should(Equal(allTrue))
	})

	It("divides large selections into several snapshots", func(ctx SpecContext) {
		makeNamespace(ctx, "m-shop")
		for i := range 3 {
			Expect(hub.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "m-shop", Name: fmt.Sprintf("large-%d", i)}, Data: map[string]string{"x": strings.Repeat("x", 500<<10)},
			})).To(Succeed())
		}
		join(ctx, "m-1", map[string]string{fleetLabel: "m"})
		agent("m-1")
		place(ctx, "m", "m-shop", nil)
		expectAvailable(ctx, "m", "0")
		works := func() ([]string, error) {
			var list placementv1beta1.WorkList
			err := hub.List(ctx, &list, client.InNamespace(clusterv1beta1.MemberNamespace("m-1")))
			var names []string
			for i := range list.Items {
				names = append(names, fmt.Sprint(list.Items[i].Name, " ", strings.Join(kindsIn(&list.Items[i]), ",")))
			}
			return names, err
		}
		Expect(works()).To(ConsistOf("m-work Namespace/m-shop,ConfigMap/large-0", "m-0 ConfigMap/large-1", "m-1 ConfigMap/large-2"))

		By("deleting Works that are no longer needed")
		Expect(hub.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "m-shop", Name: "large-2"}})).To(Succeed())
		Eventually(works).WithTimeout(soon).WithPolling(often).Should(ConsistOf("m-work Namespace/m-shop,ConfigMap/large-0", "m-0 ConfigMap/large-1"))
		expectAvailable(ctx, "m", "1")
	})

	It("reaches the same state however often the gateway is killed", func(ctx SpecContext) {
		shop(ctx, "n-shop")
		const members = 10
		for i := range members {
			name := fmt.Sprintf("n-%d", i)
			join(ctx, name, map[string]string{fleetLabel: "n"})
			agent(name)
		}
		crp := place(ctx, "n", "n-shop", nil)
		interrupt := func() {
			for _, after := range []time.Duration{20, 60, 150, 300, 600} {
				timer := time.NewTimer(after * time.Millisecond)
				<-timer.C
				gateway.stop()
				gateway = startGateway()
			}
		}
		interrupt()
		expectAvailable(ctx, "n", "0")
		changeSettings(ctx, "n-shop", "orange")
		interrupt()
		expectAvailable(ctx, "n", "1")

		var bindings placementv1beta1.ClusterResourceBindingList
		Expect(hub.List(ctx, &bindings, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "n"})).To(Succeed())
		Expect(bindings.Items).To(HaveLen(members))
		var works placementv1beta1.WorkList
		Expect(hub.List(ctx, &works, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: "n"})).To(Succeed())
		Expect(works.Items).To(HaveLen(members))

		Expect(hub.Delete(ctx, crp)).To(Succeed())
		interrupt()
		Eventually(leftOf).WithContext(ctx).WithArguments("n").WithTimeout(soon).WithPolling(often).Should(BeEmpty())
	})
})

var _ = Describe("Deleting a placement", func() {
	It("with Abandon lets members keep placed resources", func(ctx SpecContext) {
		shop(ctx, "abandon-shop")
		join(ctx, "abandon-1", map[string]string{fleetLabel: "abandon"})
		stop := agent("abandon-1")
		crp := place(ctx, "abandon", "abandon-shop", func(spec *placementv1beta1.PlacementSpec) {
			spec.Strategy.DeleteStrategy = &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.AbandonPlaced}
		})
		expectAvailable(ctx, "abandon", "0")
		stop()
		Expect(hub.Delete(ctx, crp)).To(Succeed())
		Eventually(func(g Gomega) {
			work, err := workOf(ctx, "abandon-1", "abandon")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(work.DeletionTimestamp).NotTo(BeNil())
			g.Expect(work.Annotations).To(HaveKeyWithValue(placementv1beta1.DeletePolicyAnnotation, placementv1beta1.DeletePolicyAbandon))
		}).WithTimeout(soon).WithPolling(often).Should(Succeed())
	})
})
