// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

type stageConfigs = []placementv1beta1.StageConfig

func TestInitialize_DividesMembersIntoStages(t *testing.T) {
	cases := map[string]struct {
		stages  stageConfigs
		members []string
		want    []string
	}{
		"by labels, each stage by name": {
			stages:  stageConfigs{stage("canary", "env=canary", nil), stage("prod", "env=prod", nil)},
			members: []string{"c env=prod", "a env=prod", "b env=canary"},
			want:    []string{"canary: b", "prod: a c"},
		},
		"empty selector selects all": {
			stages:  stageConfigs{stage("all", "", nil)},
			members: []string{"b", "a"},
			want:    []string{"all: a b"},
		},
		"stage without a selector has no members": {
			stages:  stageConfigs{{Name: "none"}, stage("all", "", nil)},
			members: []string{"a"},
			want:    []string{"none:", "all: a"},
		},
		"by a number, then by name": {
			stages: stageConfigs{stage("all", "", func(s *placementv1beta1.StageConfig) {
				key := "order"
				s.SortingLabelKey = &key
			})},
			members: []string{"d order=10", "c order=9", "b order=10", "a order=1"},
			want:    []string{"all: a c b d"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := begun(t, c.stages, c.members...)
			var got []string
			for i := range w.Run.GetStatus().StagesStatus {
				s := &w.Run.GetStatus().StagesStatus[i]
				got = append(got, strings.TrimSpace(s.StageName+": "+strings.Join(memberNames(s), " ")))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("stages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInitialize_Refuses(t *testing.T) {
	all := stageConfigs{stage("all", "", nil)}
	cases := map[string]struct {
		stages  stageConfigs
		members []string
		change  func(*world)
		want    string
	}{
		"no placement": {members: []string{"a"}, change: func(w *world) { w.Placement = nil }, want: `refused: placement "web" does not exist`},
		"placement with another strategy": {members: []string{"a"}, want: "refused: the strategy of placement", change: func(w *world) {
			w.Placement.GetSpec().Strategy.Type = placementv1beta1.RollingUpdateStrategy
		}},
		"no strategy": {members: []string{"a"}, change: func(w *world) { w.strategy = nil }, want: `refused: update strategy "slowly" does not exist`},
		"no decision yet": {members: []string{"a"}, want: "waits: the scheduler", change: func(w *world) {
			w.Placement.(*placementv1beta1.ClusterResourcePlacement).Generation = 2
		}},
		"too few members": {members: []string{"a"}, want: "refused: policy snapshot", change: func(w *world) {
			w.Policy.GetStatus().Conditions[0].Status = "False"
		}},
		"binding of an older policy": {members: []string{"a"}, want: "waits: binding", change: func(w *world) {
			w.binding("a").GetSpec().SchedulingPolicySnapshotName = "web-older"
		}},
		"no members": {want: "refused: placement \"web\" has no member"},
		"another number of members": {members: []string{"a"}, want: "refused: the placement has 1 bindings but its policy requires 2", change: func(w *world) {
			w.Placement.GetSpec().Policy = &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickN, NumberOfClusters: new(int32(2))}
		}},
		"member in no stage": {stages: stageConfigs{stage("prod", "env=prod", nil)}, members: []string{"b env=prod", "a"}, want: "refused: 1 members are in no stage: a;"},
		"member in two stages": {stages: stageConfigs{stage("prod", "env=prod", nil), stage("all", "", nil)}, members: []string{"b env=prod"},
			want: `refused: member "b" is in stage "prod" and in stage "all"`},
		"label that is no number": {members: []string{"a order=first"}, want: `refused: member "a" has no whole number in label "order"`, change: func(w *world) {
			key := "order"
			w.strategy.Stages[0].SortingLabelKey = &key
		}},
		"TimedWait without a duration": {members: []string{"a"}, want: "refused: the TimedWait after stage", change: func(w *world) {
			w.strategy.Stages[0].AfterStageTasks = []placementv1beta1.StageTask{wait(0)}
		}},
		"two waits": {members: []string{"a"}, want: "refused: stage \"all\" has two tasks of type TimedWait", change: func(w *world) {
			w.strategy.Stages[0].AfterStageTasks = []placementv1beta1.StageTask{wait(time.Minute), wait(time.Hour)}
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			stages := c.stages
			if stages == nil {
				stages = append(stageConfigs{}, all...)
			}
			w := newWorld(t, stages, c.members...)
			if c.change != nil {
				c.change(w)
			}
			if got := w.initialize(); !strings.HasPrefix(got, c.want) {
				t.Errorf("Initialize() = %q, want %q ...", got, c.want)
			}
		})
	}
}
