// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	done         = "Progressing=False/StageUpdatingSucceeded Succeeded=True/StageUpdatingSucceeded"
	progressing  = "Progressing=True/StageUpdatingStarted"
	began        = "[Started=True/ClusterUpdatingStarted]"
	updated      = "[Started=True/ClusterUpdatingStarted Succeeded=True/ClusterUpdatingSucceeded]"
	created      = "ApprovalRequestCreated=True/StageTaskApprovalRequestCreated"
	agreed       = created + " ApprovalRequestApproved=True/StageTaskApprovalRequestApproved"
	elapsed      = "WaitTimeElapsed=True/AfterStageTaskWaitTimeElapsed"
	runs         = "run: Progressing=True/UpdateRunProgressing"
	tasks        = "run: Progressing=False/UpdateRunWaiting"
	stageWaiting = "Progressing=False/StageUpdatingWaiting"
	success      = "run: Progressing=False/UpdateRunSucceeded Succeeded=True/UpdateRunSucceeded"
)

func TestNext(t *testing.T) {
	twoStages := stageConfigs{stage("canary", "env=canary", nil), stage("prod", "env=prod", nil)}
	twoMembers := []string{"a env=canary", "b env=prod"}
	cases := map[string]struct {
		reason  string
		stages  stageConfigs
		members []string
		play    func(*world)
		want    []string
		again   time.Duration
	}{
		"first stage starts": {
			stages: twoStages, members: twoMembers, play: func(w *world) { w.step() },
			want:  []string{runs, "canary: " + progressing + " a" + began, "prod:", "deleteStage:"},
			again: stuckAfter,
		},
		"second stage starts after the first": {
			stages: twoStages, members: twoMembers, play: func(w *world) { w.step().works("a").step() },
			want:  []string{runs, "canary: " + done + " a" + updated, "prod: " + progressing + " b" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"run is complete": {
			stages: twoStages, members: twoMembers, play: func(w *world) { w.step().works("a").step().works("b").step() },
			want: []string{success, "canary: " + done + " a" + updated, "prod: " + done + " b" + updated, "deleteStage: " + done},
		},
		"members one by one": {
			reason: "maxConcurrency is 1 if nobody says otherwise",
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a", "b", "c"}, play: func(w *world) { w.step().works("a").step() },
			want:  []string{runs, "all: " + progressing + " a" + updated + " b" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"half of the members, rounded down": {
			stages: stageConfigs{stage("all", "", atOnce(intstr.FromString("50%")))}, members: []string{"a", "b", "c", "d", "e"}, play: func(w *world) { w.step() },
			want:  []string{runs, "all: " + progressing + " a" + began + " b" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"at least one member": {
			stages: stageConfigs{stage("all", "", atOnce(intstr.FromString("1%")))}, members: []string{"a", "b"}, play: func(w *world) { w.step() },
			want:  []string{runs, "all: " + progressing + " a" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"up-to-date member takes no time": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a"}, play: func(w *world) {
				w.step().works("a").step()
				w.initialize() // Another run finds this state.
				w.step()
			},
			want: []string{success, "all: " + done + " a" + updated, "deleteStage: " + done},
		},
		"member whose policy changed starts again": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a"}, play: func(w *world) {
				b := w.step().works("a").step().binding("a")
				b.SetGeneration(b.GetGeneration() + 1) // The scheduler wrote it.
				w.works("a").initialize()
				w.step()
				if !placementv1beta1.StartedByRun(b) || len(w.last.Bind) != 1 {
					w.t.Errorf("rollout of the member is not started: %+v", b)
				}
				if w.step(); len(w.last.Bind) != 0 || Over(w.Run) {
					w.t.Errorf("the run does not wait for the report: %v", w.says())
				}
				w.works("a").step()
			},
			want: []string{success, "all: " + done + " a" + updated, "deleteStage: " + done},
		},
		"empty stage is skipped": {
			stages: stageConfigs{stage("none", "env=none", nil), stage("all", "", nil)}, members: []string{"a"}, play: func(w *world) { w.step() },
			want: []string{runs, "none: Progressing=False/StageUpdatingSkippedNoClusters Succeeded=True/StageUpdatingSkippedNoClusters",
				"all: " + progressing + " a" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"approval is requested before a stage": {
			stages: stageConfigs{stage("all", "", before)}, members: []string{"a"}, play: func(w *world) { w.step() },
			want: []string{tasks, "all: " + stageWaiting + " <" + created + ">", "deleteStage:"},
		},
		"stage starts after the approval": {
			stages: stageConfigs{stage("all", "", before)}, members: []string{"a"}, play: func(w *world) { w.step().approve("run-before-all").step() },
			want:  []string{runs, "all: " + progressing + " <" + agreed + "> a" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"accepted approval cannot be revoked": {
			stages: stageConfigs{stage("all", "", before)}, members: []string{"a"}, play: func(w *world) {
				w.step().approve("run-before-all").step()
				w.Approvals["run-before-all"].GetStatus().Conditions[0].Status = metav1.ConditionFalse
				w.step()
			},
			want:  []string{runs, "all: " + progressing + " <" + agreed + "> a" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"deleted request is re-created": {
			stages: stageConfigs{stage("all", "", before)}, members: []string{"a"}, play: func(w *world) {
				w.step()
				delete(w.Approvals, "run-before-all")
				w.step().approve("run-before-all").step()
			},
			want:  []string{runs, "all: " + progressing + " <" + agreed + "> a" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"wait after a stage": {
			stages: stageConfigs{stage("all", "", after(wait(time.Minute), approval()))}, members: []string{"a"}, play: func(w *world) {
				w.step().works("a").step().later(20 * time.Second).step()
			},
			want:  []string{tasks, "all: " + stageWaiting + " <> <" + created + "> a" + updated, "deleteStage:"},
			again: 40 * time.Second,
		},
		"wait is over, approval is missing": {
			stages: stageConfigs{stage("all", "", after(wait(time.Minute), approval()))}, members: []string{"a"}, play: func(w *world) {
				w.step().works("a").step().later(time.Minute).step()
			},
			want: []string{tasks, "all: " + stageWaiting + " <" + elapsed + "> <" + created + "> a" + updated, "deleteStage:"},
		},
		"approved, wait is not over": {
			stages: stageConfigs{stage("all", "", after(wait(time.Minute), approval()))}, members: []string{"a"}, play: func(w *world) {
				w.step().works("a").step().approve("run-after-all").step()
			},
			want:  []string{tasks, "all: " + stageWaiting + " <> <" + agreed + "> a" + updated, "deleteStage:"},
			again: time.Minute,
		},
		"approved and wait is over": {
			stages: stageConfigs{stage("all", "", after(wait(time.Minute), approval()))}, members: []string{"a"}, play: func(w *world) {
				w.step().works("a").step().approve("run-after-all").later(time.Minute).step()
			},
			want: []string{success, "all: " + done + " <" + elapsed + "> <" + agreed + "> a" + updated, "deleteStage: " + done},
		},
		"member takes long": {
			stages: twoStages, members: twoMembers, play: func(w *world) { w.step().later(stuckAfter).step() },
			want: []string{"run: Progressing=False/UpdateRunStuck", "canary: " + progressing + " a" + began, "prod:", "deleteStage:"},
		},
		"late member becomes available": {
			stages: twoStages, members: twoMembers, play: func(w *world) { w.step().later(stuckAfter).step().works("a").step() },
			want:  []string{runs, "canary: " + done + " a" + updated, "prod: " + progressing + " b" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"unscheduled members are last": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a"}, play: func(w *world) {
				w.bind("z", placementv1beta1.BindingUnscheduled)
				w.initialize()
				w.step().works("a").step()
			},
			want: []string{runs, "all: " + done + " a" + updated, "deleteStage: " + progressing + " z" + began},
		},
		"unscheduled members are removed": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a"}, play: func(w *world) {
				w.bind("z", placementv1beta1.BindingUnscheduled)
				w.initialize()
				w.step().works("a").step()
				w.Bindings = w.Bindings[:1]
				w.step()
			},
			want: []string{success, "all: " + done + " a" + updated, "deleteStage: " + done + " z" + updated},
		},
		"stopping waits for started members": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a", "b"}, play: func(w *world) { w.step().want(placementv1beta1.UpdateRunStop).step() },
			want:  []string{"run: Progressing=Unknown/UpdateRunStopping", "all: Progressing=Unknown/StageUpdatingStopping a" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"run is stopped": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a", "b"}, play: func(w *world) {
				w.step().want(placementv1beta1.UpdateRunStop).step().works("a").step()
			},
			want: []string{"run: Progressing=False/UpdateRunStopped", "all: Progressing=False/StageUpdatingStopped a" + updated, "deleteStage:"},
		},
		"stopped run continues": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a", "b"}, play: func(w *world) {
				w.step().want(placementv1beta1.UpdateRunStop).step().works("a").step().want(placementv1beta1.UpdateRunRun).step()
			},
			want:  []string{runs, "all: " + progressing + " a" + updated + " b" + began, "deleteStage:"},
			again: stuckAfter,
		},
		"paused member is skipped until it resumes": {
			stages: stageConfigs{stage("all", "", atOnce(intstr.FromInt32(2)))}, members: []string{"a", "b", "c"}, play: func(w *world) {
				w.Paused = map[string]bool{"a": true}
				w.step().works("b", "c").step()
			},
			want: []string{runs, "all: " + progressing + " b" + updated + " c" + updated, "deleteStage:"},
		},
		"stop before deletions starts none": {
			stages: stageConfigs{stage("all", "", nil)}, members: []string{"a"}, play: func(w *world) {
				w.bind("z", placementv1beta1.BindingUnscheduled)
				w.initialize()
				w.step().want(placementv1beta1.UpdateRunStop).works("a").step().step()
			},
			want: []string{"run: Progressing=False/UpdateRunStopped", "all: Progressing=False/StageUpdatingStopped a" + updated, "deleteStage:"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := begun(t, c.stages, c.members...)
			c.play(w)
			if diff := cmp.Diff(c.want, w.says()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if w.last.Again != c.again {
				t.Errorf("Again = %s, want %s", w.last.Again, c.again)
			}
		})
	}
}

func before(s *placementv1beta1.StageConfig) {
	s.BeforeStageTasks = []placementv1beta1.StageTask{approval()}
}

func after(tasks ...placementv1beta1.StageTask) func(*placementv1beta1.StageConfig) {
	return func(s *placementv1beta1.StageConfig) { s.AfterStageTasks = tasks }
}

func TestNext_FailsWhenPlacementChanged(t *testing.T) {
	cases := map[string]struct {
		change func(*world)
		want   string
	}{
		"deleted placement": {func(w *world) { w.Placement = nil }, "does not exist"},
		"another strategy":  {func(w *world) { w.Placement.GetSpec().Strategy.Type = placementv1beta1.RollingUpdateStrategy }, "only a placement with strategy External"},
		"another apply strategy": {func(w *world) {
			w.Placement.GetSpec().Strategy.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
		}, "applyStrategy has changed"},
		"another policy":          {func(w *world) { w.Policy.GetLabels()[placementv1beta1.PolicyIndexLabel] = "1" }, "policy has changed"},
		"new member":              {func(w *world) { w.Members["d"] = nil; w.bind("d", placementv1beta1.BindingScheduled) }, "had 2 members when the run was initialised, and has 3 now"},
		"member in another stage": {func(w *world) { w.Members["b"] = map[string]string{"env": "canary"} }, `the members of stage "canary" have changed`},
		"member that left":        {func(w *world) { delete(w.Members, "b") }, "1 members are in no stage: b"},
		"unscheduled member":      {func(w *world) { w.bind("z", placementv1beta1.BindingUnscheduled) }, `member "z" has been unscheduled`},
		"binding that another run changed": {func(w *world) { w.binding("a").GetSpec().ResourceSnapshotName = "web-9-snapshot" },
			`binding "to-a" of member "a" in stage "canary" was changed by another client`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := begun(t, stageConfigs{stage("canary", "env=canary", nil), stage("prod", "env=prod", nil)}, "a env=canary", "b env=prod")
			w.step()
			c.change(w)
			w.step()
			if !strings.Contains(w.last.Refused, c.want) {
				t.Errorf("Refused = %q, want %q", w.last.Refused, c.want)
			}
			if got := w.says()[0]; got != "run: Progressing=False/UpdateRunFailed Succeeded=False/UpdateRunFailed" {
				t.Errorf("status = %s", got)
			}
			if !Over(w.Run) || len(w.last.Bind) > 0 {
				t.Errorf("continues: %+v", w.last.Bind)
			}
		})
	}
}

func TestNext_IsIdempotent(t *testing.T) {
	w := begun(t, stageConfigs{stage("all", "", after(wait(time.Hour)))}, "a", "b")
	for _, play := range []func(){func() { w.step() }, func() { w.works("a").step() }, func() { w.works("b").step() }, func() { w.want(placementv1beta1.UpdateRunStop).step() }} {
		play()
		status := w.Run.GetStatus().DeepCopy()
		w.later(time.Second).step()
		if diff := cmp.Diff(status, w.Run.GetStatus()); diff != "" {
			t.Errorf("status changes without a cause:\n%s", diff)
		}
		if len(w.last.Bind)+len(w.last.Ask)+len(w.last.Delete)+len(w.last.Accept) > 0 {
			t.Errorf("repeats steps: %+v", w.last)
		}
	}
}

func TestNext_RejectsForeignApprovalRequest(t *testing.T) {
	w := begun(t, stageConfigs{stage("all", "", before)}, "a")
	w.Approvals["run-before-all"] = &placementv1beta1.ClusterApprovalRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "run-before-all"}, Spec: placementv1beta1.ApprovalRequestSpec{ParentStageRollout: "other", TargetStage: "all"}}
	w.step()
	if want := `approval request "run-before-all" already exists`; !strings.HasPrefix(w.last.Refused, want) {
		t.Errorf("Refused = %q, want %q ...", w.last.Refused, want)
	}
	if got, want := w.says()[1], "all: Progressing=False/StageUpdatingFailed Succeeded=False/StageUpdatingFailed <>"; got != want {
		t.Errorf("stage = %s, want %s", got, want)
	}
}

func TestNext_WaitsForPausedPlacement(t *testing.T) {
	w := begun(t, stageConfigs{stage("all", "", nil)}, "a")
	w.Placement.SetAnnotations(map[string]string{placementv1beta1.PausedAnnotation: "true"})
	if step, no := Next(&w.Observed); !waiting(no) || len(step.Bind) > 0 {
		t.Errorf("Next() = %+v, %+v", step, no)
	}
}
