// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// world is a hub in memory with a run on it.
type world struct {
	t *testing.T
	Observed
	strategy *placementv1beta1.UpdateStrategySpec
	// last is the step taken last.
	last Step
}

// newWorld has the placement "web" on members, given as "name key=value ...".
func newWorld(t *testing.T, stages []placementv1beta1.StageConfig, members ...string) *world {
	t.Helper()
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "run", Generation: 1}}
	run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedRolloutStrategyName: "slowly", State: placementv1beta1.UpdateRunRun}
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}}
	placement.Spec.Strategy.Type = placementv1beta1.ExternalStrategy
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{
		Name: "web-0", Generation: 1, Labels: map[string]string{placementv1beta1.PolicyIndexLabel: "0"}}}
	policy.Status.ObservedCRPGeneration = 1
	policy.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionScheduled, Status: metav1.ConditionTrue, ObservedGeneration: 1}}
	w := &world{t: t, strategy: &placementv1beta1.UpdateStrategySpec{Stages: stages}, Observed: Observed{
		Run: run, Placement: placement, Policy: policy, Members: map[string]labels.Set{},
		Approvals: map[string]placementv1beta1.ApprovalRequestObject{}, Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}}
	for _, m := range members {
		name, text, _ := strings.Cut(m, " ")
		set, err := labels.ConvertSelectorToLabelsMap(strings.ReplaceAll(text, " ", ","))
		if err != nil {
			t.Fatal(err)
		}
		w.Members[name] = set
		w.bind(name, placementv1beta1.BindingScheduled)
	}
	return w
}

func (w *world) bind(member string, state placementv1beta1.BindingState) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "to-" + member, Generation: 1}}
	b.Spec.State, b.Spec.TargetCluster, b.Spec.SchedulingPolicySnapshotName = state, member, "web-0"
	w.Bindings = append(w.Bindings, b)
	return b
}

func (w *world) binding(member string) placementv1beta1.BindingObject {
	w.t.Helper()
	for _, b := range w.Bindings {
		if b.GetSpec().TargetCluster == member {
			return b
		}
	}
	w.t.Fatalf("no binding to %s", member)
	return nil
}

func stage(name, selector string, change func(*placementv1beta1.StageConfig)) placementv1beta1.StageConfig {
	s := placementv1beta1.StageConfig{Name: name}
	if selector != "" {
		parsed, err := metav1.ParseToLabelSelector(selector)
		if err != nil {
			panic(err)
		}
		s.LabelSelector = parsed
	} else {
		s.LabelSelector = &metav1.LabelSelector{}
	}
	if change != nil {
		change(&s)
	}
	return s
}

func atOnce(n intstr.IntOrString) func(*placementv1beta1.StageConfig) {
	return func(s *placementv1beta1.StageConfig) { s.MaxConcurrency = &n }
}

func approval() placementv1beta1.StageTask {
	return placementv1beta1.StageTask{Type: placementv1beta1.StageTaskApproval}
}

func wait(d time.Duration) placementv1beta1.StageTask {
	return placementv1beta1.StageTask{Type: placementv1beta1.StageTaskTimedWait, WaitTime: &metav1.Duration{Duration: d}}
}

// initialize begins the run, and returns why it does not.
func (w *world) initialize() string {
	w.t.Helper()
	status, no := Initialize(&w.Observed, w.strategy)
	if waiting(no) {
		return "waits: " + no.Message
	}
	if no != nil {
		return "refused: " + no.Message
	}
	status.ResourceSnapshotIndexUsed = "7"
	newConditionWriter(w.Run, w.Now).set(&status.Conditions, placementv1beta1.ConditionUpdateRunInitialized, metav1.ConditionTrue,
		placementv1beta1.ReasonUpdateRunInitializedSuccessfully, "")
	*w.Run.GetStatus() = status
	return ""
}

// begun is a world whose run is initialised.
func begun(t *testing.T, stages []placementv1beta1.StageConfig, members ...string) *world {
	t.Helper()
	w := newWorld(t, stages, members...)
	if why := w.initialize(); why != "" {
		t.Fatal(why)
	}
	return w
}

// step takes the next step.
func (w *world) step() *world {
	w.t.Helper()
	step, no := Next(&w.Observed)
	if waiting(no) {
		w.t.Fatalf("waits: %s", no.Message)
	}
	for _, b := range step.Bind {
		before := b.Object.GetSpec().DeepCopy()
		if b.start(); !equality.Semantic.DeepEqual(*before, b.Spec) {
			b.Object.SetGeneration(b.Object.GetGeneration() + 1)
		}
	}
	now := metav1.NewTime(w.Now)
	for _, b := range step.Delete {
		b.SetDeletionTimestamp(&now)
	}
	for _, q := range step.Ask {
		w.Approvals[q.Name] = q.object(types.NamespacedName{Name: w.Run.GetName()})
	}
	for _, a := range step.Accept {
		a.GetStatus().Conditions = append(a.GetStatus().Conditions, metav1.Condition{
			Type: placementv1beta1.ConditionApprovalRequestApprovalAccepted, Status: metav1.ConditionTrue})
	}
	*w.Run.GetStatus(), w.last = *step.Status, step
	return w
}

// works reports that members have what their bindings say, like the dispatcher.
func (w *world) works(members ...string) *world {
	w.t.Helper()
	for _, m := range members {
		b := w.binding(m)
		kinds := []string{placementv1beta1.ConditionAvailable}
		if placementv1beta1.StartedByRun(b) {
			kinds = append(kinds, placementv1beta1.ConditionRolloutStarted)
		}
		for _, kind := range kinds {
			meta.SetStatusCondition(&b.GetStatus().Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, ObservedGeneration: b.GetGeneration()})
		}
	}
	return w
}

func (w *world) approve(name string) *world {
	w.t.Helper()
	a, ok := w.Approvals[name]
	if !ok {
		w.t.Fatalf("nobody asked for %s", name)
	}
	a.GetStatus().Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionApprovalRequestApproved, Status: metav1.ConditionTrue}}
	return w
}

func (w *world) want(state placementv1beta1.UpdateRunState) *world {
	w.Run.GetSpec().State = state
	w.Run.SetGeneration(w.Run.GetGeneration() + 1)
	return w
}

func (w *world) later(d time.Duration) *world {
	w.Now = w.Now.Add(d)
	return w
}

// says is the run's conditions after the first, then each stage with its own, and its
// members that have any.
func (w *world) says() []string {
	status := w.Run.GetStatus()
	text := []string{"run: " + brief(w.Run, status.Conditions[1:])}
	stages := append([]placementv1beta1.StageUpdatingStatus{}, status.StagesStatus...)
	for _, s := range append(stages, *status.DeletionStageStatus) {
		line := strings.TrimPrefix(s.StageName, placementv1beta1.KeyPrefix) + ": " + brief(w.Run, s.Conditions)
		for _, tasks := range [][]placementv1beta1.StageTaskStatus{s.BeforeStageTaskStatus, s.AfterStageTaskStatus} {
			for _, task := range tasks {
				line += fmt.Sprintf(" <%s>", brief(w.Run, task.Conditions))
			}
		}
		for _, c := range s.Clusters {
			if len(c.Conditions) > 0 {
				line += fmt.Sprintf(" %s[%s]", c.ClusterName, brief(w.Run, c.Conditions))
			}
		}
		text = append(text, strings.TrimSpace(line))
	}
	return text
}

// brief writes conditions as "Type=Status/Reason", a stale one with a question mark.
func brief(run placementv1beta1.UpdateRunObject, conditions []metav1.Condition) string {
	var all []string
	for _, c := range conditions {
		text := fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
		if c.ObservedGeneration != run.GetGeneration() {
			text += "?"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}
