// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// stagedBy creates a strategy with the stages.
func stagedBy(ctx context.Context, name string, stages ...placementv1beta1.StageConfig) {
	GinkgoHelper()
	s := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.Stages = stages
	create(ctx, s)
}

// stageOf is a stage of the spec's members with that tier, or of all.
func stageOf(name, spec, tier string) placementv1beta1.StageConfig {
	labels := map[string]string{fleetLabel: spec}
	if tier != "" {
		labels["tier"] = tier
	}
	return placementv1beta1.StageConfig{Name: name, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}}
}

func tier(value string) map[string]string { return map[string]string{"tier": value} }

// runOf creates a run of the placement with the strategy of its name.
func runOf(ctx context.Context, name, placement, index string, state placementv1beta1.UpdateRunState) *placementv1beta1.ClusterStagedUpdateRun {
	GinkgoHelper()
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
	run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: placement, ResourceSnapshotIndex: index, StagedRolloutStrategyName: placement, State: state}
	create(ctx, run)
	return run
}

func externally(spec *placementv1beta1.PlacementSpec) {
	spec.Strategy.Type = placementv1beta1.ExternalStrategy
}

// placeExternally waits until the scheduler has decided, like a user would.
func placeExternally(ctx context.Context, name string, members int) {
	GinkgoHelper()
	place(ctx, name, name+"-shop", externally)
	Eventually(bindingsOf).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(HaveLen(members))
	Eventually(summary).WithContext(ctx).WithArguments(name).WithTimeout(soon).WithPolling(often).Should(Equal([]string{
		"Scheduled=True/SchedulingPolicyFulfilled", "RolloutStarted=Unknown/RolloutControlledByExternalController"}))
}

// runSays is a run's conditions, then each stage with its own and its members that have any.
func runSays(ctx context.Context, key types.NamespacedName) ([]string, error) {
	var run placementv1beta1.UpdateRunObject = &placementv1beta1.ClusterStagedUpdateRun{}
	if key.Namespace != "" {
		run = &placementv1beta1.StagedUpdateRun{}
	}
	if err := hub.Get(ctx, key, run); err != nil {
		return nil, err
	}
	say := func(conditions []metav1.Condition) string {
		return strings.Join(brief(conditions, "", run.GetGeneration()), " ")
	}
	status := run.GetStatus()
	all := []string{"run " + say(status.Conditions)}
	stages := append([]placementv1beta1.StageUpdatingStatus{}, status.StagesStatus...)
	if status.DeletionStageStatus != nil {
		stages = append(stages, *status.DeletionStageStatus)
	}
	for _, s := range stages {
		line := strings.TrimPrefix(s.StageName, placementv1beta1.KeyPrefix) + " " + say(s.Conditions)
		for _, c := range s.Clusters {
			if len(c.Conditions) > 0 {
				line += fmt.Sprintf(" %s[%s]", c.ClusterName, say(c.Conditions))
			}
		}
		all = append(all, strings.TrimSpace(line))
	}
	return all, nil
}

func expectRun(ctx context.Context, key types.NamespacedName, lines ...string) {
	GinkgoHelper()
	Eventually(runSays).WithContext(ctx).WithArguments(key).WithTimeout(soon).WithPolling(often).Should(Equal(lines))
}

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

const (
	begunWell    = "run Initialized=True/UpdateRunInitializedSuccessfully"
	runProgress  = begunWell + " Progressing=True/UpdateRunProgressing"
	runWaits     = begunWell + " Progressing=False/UpdateRunWaiting"
	runSucceeded = begunWell + " Progressing=False/UpdateRunSucceeded Succeeded=True/UpdateRunSucceeded"
	runFailed    = begunWell + " Progressing=False/UpdateRunFailed Succeeded=False/UpdateRunFailed"
	stageDone    = " Progressing=False/StageUpdatingSucceeded Succeeded=True/StageUpdatingSucceeded"
	stageGoing   = " Progressing=True/StageUpdatingStarted"
	stageWaits   = " Progressing=False/StageUpdatingWaiting"
	memberDone   = "[Started=True/ClusterUpdatingStarted Succeeded=True/ClusterUpdatingSucceeded]"
	memberGoing  = "[Started=True/ClusterUpdatingStarted]"
)

func want(ctx context.Context, run client.Object, state string) {
	GinkgoHelper()
	Expect(hub.Patch(ctx, run, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"state":"`+state+`"}}`)))).To(Succeed())
}

// approve waits for a request and approves it like kubectl-fleet.
func approve(ctx context.Context, a placementv1beta1.ApprovalRequestObject) {
	GinkgoHelper()
	key := client.ObjectKeyFromObject(a)
	Eventually(func() error {
		if err := hub.Get(ctx, key, a); err != nil {
			return err
		}
		meta.SetStatusCondition(&a.GetStatus().Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionApprovalRequestApproved, Status: metav1.ConditionTrue, Reason: "Test", ObservedGeneration: a.GetGeneration()})
		return hub.Status().Update(ctx, a)
	}).WithTimeout(soon).WithPolling(often).Should(Succeed())
}

func request(name string) *placementv1beta1.ClusterApprovalRequest {
	return &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// snapshotOn is the resource snapshot in a member's binding.
func snapshotOn(ctx context.Context, placement, member string) func() (string, error) {
	return func() (string, error) {
		bindings, err := bindingsOf(ctx, placement)
		b := bindings[member]
		return b.Spec.ResourceSnapshotName, err
	}
}

var _ = Describe("A staged update run", func() {
	It("passes its stages with approvals and waits, and rolls back", func(ctx SpecContext) {
		shop(ctx, "ua-shop")
		joinAll(ctx, "ua", tier("canary"), tier("prod"), tier("prod"))
		canary, prod := stageOf("canary", "ua", "canary"), stageOf("prod", "ua", "prod")
		canary.AfterStageTasks = []placementv1beta1.StageTask{
			{Type: placementv1beta1.StageTaskTimedWait, WaitTime: &metav1.Duration{Duration: time.Second}}, {Type: placementv1beta1.StageTaskApproval}}
		prod.BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskApproval}}
		prod.MaxConcurrency = new(intstr.FromString("100%"))
		stagedBy(ctx, "ua", canary, prod)
		placeExternally(ctx, "ua", 3)

		By("computing the stages")
		run := runOf(ctx, "ua-first", "ua", "", placementv1beta1.UpdateRunInitialize)
		expectRun(ctx, named("ua-first"), begunWell, "canary", "prod", "deleteStage")
		Expect(hub.Get(ctx, named("ua-first"), run)).To(Succeed())
		Expect(run.Finalizers).To(ConsistOf("kubernetes-fleet.io/stagedupdaterun-finalizer"))
		Expect(run.Status.PolicySnapshotIndexUsed).To(Equal("0"))
		Expect(run.Status.ResourceSnapshotIndexUsed).To(Equal("0"))
		Expect(run.Status.PolicyObservedClusterCount).To(Equal(3))
		Expect(run.Status.AppliedStrategy).To(Equal(&placementv1beta1.ApplyStrategy{
			Type: placementv1beta1.ClientSideApply, ComparisonOption: placementv1beta1.PartialComparison,
			WhenToApply: placementv1beta1.ApplyAlways, WhenToTakeOver: placementv1beta1.TakeOverAlways}))
		Expect(run.Status.StagedUpdateStrategySnapshot.Stages).To(HaveLen(2))
		Expect(run.Status.StagesStatus[0].AfterStageTaskStatus).To(Equal([]placementv1beta1.StageTaskStatus{
			{Type: placementv1beta1.StageTaskTimedWait}, {Type: placementv1beta1.StageTaskApproval, ApprovalRequestName: "ua-first-after-canary"}}))
		Expect(snapshotOn(ctx, "ua", "ua-1")()).To(BeEmpty())

		By("running the first stage")
		want(ctx, run, "Run")
		expectRun(ctx, named("ua-first"), runWaits, "canary"+stageWaits+" ua-1"+memberDone, "prod", "deleteStage")
		Expect(snapshotOn(ctx, "ua", "ua-1")()).To(Equal("ua-0-snapshot"))
		Expect(snapshotOn(ctx, "ua", "ua-2")()).To(BeEmpty())
		a := request("ua-first-after-canary")
		Eventually(func() error { return hub.Get(ctx, client.ObjectKeyFromObject(a), a) }).WithTimeout(soon).WithPolling(often).Should(Succeed())
		Expect(a.Labels).To(Equal(map[string]string{
			"kubernetes-fleet.io/targetUpdateRun": "ua-first", "kubernetes-fleet.io/targetUpdatingStage": "canary",
			"kubernetes-fleet.io/taskType": "afterStage", "kubernetes-fleet.io/isLatestUpdateRunApproval": "true"}))
		Expect(a.Spec).To(Equal(placementv1beta1.ApprovalRequestSpec{ParentStageRollout: "ua-first", TargetStage: "canary"}))

		By("approving it, and the next stage")
		approve(ctx, a)
		expectRun(ctx, named("ua-first"), runWaits, "canary"+stageDone+" ua-1"+memberDone, "prod"+stageWaits, "deleteStage")
		Expect(hub.Get(ctx, client.ObjectKeyFromObject(a), a)).To(Succeed())
		Expect(brief(a.Status.Conditions, "", a.Generation)).To(ContainElement("ApprovalAccepted=True/ApprovalRequestApprovalAccepted"))
		approve(ctx, request("ua-first-before-prod"))
		expectRun(ctx, named("ua-first"), runSucceeded, "canary"+stageDone+" ua-1"+memberDone,
			"prod"+stageDone+" ua-2"+memberDone+" ua-3"+memberDone, "deleteStage"+stageDone)
		expectAvailable(ctx, "ua", "0")

		By("another run after a change, which has no effect by itself")
		changeSettings(ctx, "ua-shop", "green")
		second := runOf(ctx, "ua-second", "ua", "", placementv1beta1.UpdateRunRun)
		for _, name := range []string{"ua-second-after-canary", "ua-second-before-prod"} {
			approve(ctx, request(name))
		}
		Eventually(snapshotOn(ctx, "ua", "ua-3")).WithTimeout(soon).WithPolling(often).Should(Equal("ua-1-snapshot"))
		Eventually(workSays(ctx, "ua-3", "ua", "green")).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		expectAvailable(ctx, "ua", "1")

		By("rolling back to the first snapshot")
		back := runOf(ctx, "ua-back", "ua", "0", placementv1beta1.UpdateRunRun)
		for _, name := range []string{"ua-back-after-canary", "ua-back-before-prod"} {
			approve(ctx, request(name))
		}
		expectAvailable(ctx, "ua", "0")
		Eventually(workSays(ctx, "ua-3", "ua", "red")).WithTimeout(soon).WithPolling(often).Should(BeTrue())

		By("deleting the runs with their requests")
		for _, run := range []client.Object{run, second, back} {
			Expect(hub.Delete(ctx, run)).To(Succeed())
			Eventually(func() bool { return apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(run), run)) }).WithTimeout(soon).WithPolling(often).Should(BeTrue())
		}
		Expect(apierrors.IsNotFound(hub.Get(ctx, client.ObjectKeyFromObject(a), a))).To(BeTrue())
	})

	It("stops after the started members, continues, and is unchanged by a restart of the gateway", func(ctx SpecContext) {
		shop(ctx, "ub-shop")
		for _, name := range []string{"ub-1", "ub-2", "ub-3"} {
			join(ctx, name, map[string]string{fleetLabel: "ub"}) // Their agents do not run yet.
		}
		stagedBy(ctx, "ub", stageOf("all", "ub", ""))
		placeExternally(ctx, "ub", 3)
		run := runOf(ctx, "ub", "ub", "", placementv1beta1.UpdateRunRun)
		expectRun(ctx, named("ub"), runProgress, "all"+stageGoing+" ub-1"+memberGoing, "deleteStage")
		want(ctx, run, "Stop")
		expectRun(ctx, named("ub"), begunWell+" Progressing=Unknown/UpdateRunStopping", "all Progressing=Unknown/StageUpdatingStopping ub-1"+memberGoing, "deleteStage")

		gateway.stop()
		agent("ub-1")
		Eventually(func() ([]metav1.Condition, error) {
			work, err := workOf(ctx, "ub-1", "ub")
			return work.Status.Conditions, err
		}).WithTimeout(soon).WithPolling(often).Should(HaveLen(2))
		gateway = startGateway()

		expectRun(ctx, named("ub"), begunWell+" Progressing=False/UpdateRunStopped", "all Progressing=False/StageUpdatingStopped ub-1"+memberDone, "deleteStage")
		Expect(snapshotOn(ctx, "ub", "ub-2")()).To(BeEmpty())
		want(ctx, run, "Run")
		expectRun(ctx, named("ub"), runProgress, "all"+stageGoing+" ub-1"+memberDone+" ub-2"+memberGoing, "deleteStage")
		agent("ub-2")
		agent("ub-3")
		expectRun(ctx, named("ub"), runSucceeded, "all"+stageDone+" ub-1"+memberDone+" ub-2"+memberDone+" ub-3"+memberDone, "deleteStage"+stageDone)
	})

	It("removes the resources from unscheduled members last", func(ctx SpecContext) {
		shop(ctx, "uc-shop")
		joinAll(ctx, "uc", nil, nil)
		stagedBy(ctx, "uc", stageOf("all", "uc", ""))
		placeExternally(ctx, "uc", 2)
		runOf(ctx, "uc-first", "uc", "", placementv1beta1.UpdateRunRun)
		expectAvailable(ctx, "uc", "0")

		respec(ctx, "uc", func(spec *placementv1beta1.PlacementSpec) {
			spec.Policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].LabelSelector.MatchLabels["kubernetes-fleet.io/member-name"] = "uc-2"
		})
		edit(ctx, "uc-2", func(m *clusterv1beta1.MemberCluster) { m.Labels["kubernetes-fleet.io/member-name"] = "uc-2" })
		Eventually(func() (placementv1beta1.BindingState, error) {
			bindings, err := bindingsOf(ctx, "uc")
			b := bindings["uc-1"]
			return b.Spec.State, err
		}).WithTimeout(soon).WithPolling(often).Should(Equal(placementv1beta1.BindingUnscheduled))
		_, err := workOf(ctx, "uc-1", "uc")
		Expect(err).NotTo(HaveOccurred(), "an update run decides on its removal")
		expectRollouts(ctx, "uc", "uc-2@0 Unknown/RolloutStartedUnknown")

		runOf(ctx, "uc-second", "uc", "", placementv1beta1.UpdateRunRun)
		expectRun(ctx, named("uc-second"), runSucceeded, "all"+stageDone+" uc-2"+memberDone, "deleteStage"+stageDone+" uc-1"+memberDone)
		_, err = workOf(ctx, "uc-1", "uc")
		Expect(apierrors.IsNotFound(err)).To(BeTrue())
	})

	It("fails when a member joins the placement meanwhile, and a run that cannot start reports the reason", func(ctx SpecContext) {
		shop(ctx, "ud-shop")
		join(ctx, "ud-1", map[string]string{fleetLabel: "ud"})
		stagedBy(ctx, "ud", stageOf("all", "ud", ""))
		placeExternally(ctx, "ud", 1)
		runOf(ctx, "ud", "ud", "", placementv1beta1.UpdateRunRun)
		expectRun(ctx, named("ud"), runProgress, "all"+stageGoing+" ud-1"+memberGoing, "deleteStage")
		join(ctx, "ud-2", map[string]string{fleetLabel: "ud"})
		expectRun(ctx, named("ud"), runFailed, "all"+stageGoing+" ud-1"+memberGoing, "deleteStage")

		why := func(name string) func() (string, error) {
			return func() (string, error) {
				run := &placementv1beta1.ClusterStagedUpdateRun{}
				err := hub.Get(ctx, named(name), run)
				if len(run.Status.Conditions) == 0 {
					return "", err
				}
				c := run.Status.Conditions[0]
				return fmt.Sprintf("%s=%s/%s %s", c.Type, c.Status, c.Reason, c.Message), err
			}
		}
		runOf(ctx, "ud-index", "ud", "9", placementv1beta1.UpdateRunRun)
		Eventually(why("ud-index")).WithTimeout(soon).WithPolling(often).Should(And(HavePrefix("Initialized=False/UpdateRunInitializedFailed"), ContainSubstring("no resource snapshot with index 9")))
		runOf(ctx, "ud-nowhere", "ud-nowhere", "", placementv1beta1.UpdateRunRun)
		Eventually(why("ud-nowhere")).WithTimeout(soon).WithPolling(often).Should(ContainSubstring(`placement "ud-nowhere" does not exist`))
	})

	It("works for a placement in a namespace, with overrides", func(ctx SpecContext) {
		shop(ctx, "ue-shop")
		joinAll(ctx, "ue", nil)
		create(ctx, ofSettings("ue-shop", "colours", sets("", "/data/colour", `"blue"`)))
		rp := placeIn(ctx, "ue-shop", "settings", "ue")
		Expect(hub.Patch(ctx, rp, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"strategy":{"type":"External","rollingUpdate":null}}}`)))).To(Succeed())
		s := &placementv1beta1.StagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Namespace: "ue-shop", Name: "slowly"}}
		all := stageOf("all", "ue", "")
		all.BeforeStageTasks = []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskApproval}}
		s.Spec.Stages = []placementv1beta1.StageConfig{all}
		create(ctx, s)
		Expect(hub.Patch(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ue-shop", Name: "settings"}},
			client.RawPatch(types.MergePatchType, []byte(`{"data":{"new":"yes"}}`)))).To(Succeed())

		run := &placementv1beta1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Namespace: "ue-shop", Name: "run"}}
		run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: "settings", StagedRolloutStrategyName: "slowly", State: placementv1beta1.UpdateRunRun}
		create(ctx, run)
		key := client.ObjectKeyFromObject(run)
		expectRun(ctx, key, runWaits, "all"+stageWaits, "deleteStage")
		Expect(hub.Get(ctx, key, run)).To(Succeed())
		Expect(run.Status.StagesStatus[0].Clusters[0].ResourceOverrideSnapshots).To(Equal([]placementv1beta1.NamespacedName{{Namespace: "ue-shop", Name: "colours-0"}}))
		approve(ctx, &placementv1beta1.ApprovalRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "ue-shop", Name: "run-before-all"}})
		expectRun(ctx, key, runSucceeded, "all"+stageDone+" ue-1"+memberDone, "deleteStage"+stageDone)
		work, err := namespacedWork(ctx, "ue-1", "ue-shop.settings-work")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(work.Spec.Workload.Manifests[0].Raw)).To(And(ContainSubstring(`"colour":"blue"`), ContainSubstring(`"new":"yes"`)))
	})
})
