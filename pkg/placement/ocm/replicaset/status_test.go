// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

// worksThatAre returns works with each of these conditions being True.
func worksThatAre(conditions ...[]string) []*workv1.ManifestWork {
	var all []*workv1.ManifestWork
	for _, types := range conditions {
		work := &workv1.ManifestWork{}
		for _, kind := range types {
			work.Status.Conditions = append(work.Status.Conditions, condition(kind, metav1.ConditionTrue, 0, 0))
		}
		all = append(all, work)
	}
	return all
}

// ofPlacement has that many clusters, current ones and succeeded ones.
func ofPlacement(clusters, current, succeeded int, change func(*placed)) *placed {
	p := &placed{name: "p", decided: &decided{clusters: sets.New[string](), selected: clusters, groupCount: 1}, current: sets.New[string](), succeeded: sets.New[string](), applied: sets.New[string]()}
	for i := range clusters {
		p.decided.clusters.Insert(fmt.Sprint(i))
	}
	for i := range current {
		p.current.Insert(fmt.Sprint(i))
	}
	for i := range succeeded {
		p.succeeded.Insert(fmt.Sprint(i))
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestDesiredStatus_Conditions(t *testing.T) {
	const ap, av, pr, de = workv1.ConditionApplied, workv1.ConditionAvailable, workv1.ConditionProgressing, workv1.ConditionDegraded
	const empty = "PlacementVerified False PlacementDecisionEmpty "
	const verified, complete = "PlacementVerified True AsExpected ", "PlacementRolledOut True Complete "
	const progressing, applied = "PlacementRolledOut False Progressing ", "ManifestworkApplied True AsExpected "
	const not = "ManifestworkApplied False NotAsExpected "
	for name, tc := range map[string]struct {
		all     []*placed
		works   []*workv1.ManifestWork
		message string
		want    []string
	}{
		"nobody was decided for": {
			all: []*placed{ofPlacement(0, 0, 0, nil)}, want: []string{empty, complete, "ManifestworkApplied False PlacementDecisionEmpty "},
		},
		"decisions are still being written": {
			all:  []*placed{ofPlacement(0, 0, 0, func(p *placed) { p.decided.selected = 2 })},
			want: []string{empty, progressing, "ManifestworkApplied False PlacementDecisionEmpty "},
		},
		"works have just been made": {
			all: []*placed{ofPlacement(2, 2, 0, nil)}, want: []string{verified, progressing, not},
		},
		"all applied and available": {
			all: []*placed{ofPlacement(2, 2, 2, nil)}, works: worksThatAre([]string{ap, av}, []string{ap, av}), want: []string{verified, complete, applied},
		},
		"one is Progressing": {
			all: []*placed{ofPlacement(2, 2, 1, nil)}, works: worksThatAre([]string{ap, av}, []string{ap, av, pr}),
			want: []string{verified, progressing, "ManifestworkApplied False Processing "},
		},
		"one is Degraded": {
			all: []*placed{ofPlacement(2, 2, 1, nil)}, works: worksThatAre([]string{ap, av, pr}, []string{ap, av, pr, de}), want: []string{verified, progressing, not},
		},
		"one is not Available": {
			all: []*placed{ofPlacement(2, 2, 1, nil)}, works: worksThatAre([]string{ap, av}, []string{ap}), want: []string{verified, progressing, not},
		},
		"more failed than may": {
			all: []*placed{ofPlacement(2, 1, 0, func(p *placed) { p.plan.Stopped = true })}, works: worksThatAre([]string{ap}),
			want: []string{verified, progressing + `the rollout to the clusters of Placement "p" has stopped, as more failed or timed out than may`, not},
		},
		"a Placement is missing": {
			all:  []*placed{{name: "gone"}},
			want: []string{"PlacementVerified False PlacementDecisionNotFound there is no Placement gone in this namespace", progressing, not},
		},
		"one of two Placements is missing": {
			all: []*placed{{name: "gone"}, ofPlacement(1, 1, 1, nil)}, works: worksThatAre([]string{ap, av}),
			want: []string{"PlacementVerified False PlacementDecisionNotFound there is no Placement gone in this namespace", progressing, applied},
		},
		"nothing could be written": {
			all: []*placed{ofPlacement(1, 0, 0, nil)}, message: "creating ManifestWork c1/web: no",
			want: []string{"PlacementVerified False NotAsExpected creating ManifestWork c1/web: no", progressing, not},
		},
		"a strategy cannot be read": {
			all:  []*placed{ofPlacement(1, 0, 0, func(p *placed) { p.refused = "what?" })},
			want: []string{`PlacementVerified False NotAsExpected Placement "p": what?`, progressing, not},
		},
	} {
		set := replicaSet("a", "web")
		set.Generation = 3
		got := desiredStatus(set, tc.all, tc.works, tc.message)
		var said []string
		for _, c := range got.Conditions {
			said = append(said, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.Message))
			if c.ObservedGeneration != 3 {
				t.Errorf("%s: %s is of generation %d", name, c.Type, c.ObservedGeneration)
			}
		}
		if diff := cmp.Diff(tc.want, said); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDesiredStatus_Summary(t *testing.T) {
	const ap, av, pr, de = workv1.ConditionApplied, workv1.ConditionAvailable, workv1.ConditionProgressing, workv1.ConditionDegraded
	going := worksThatAre([]string{ap, av})
	now := metav1.NewTime(noon)
	going[0].DeletionTimestamp = &now
	works := append(going, worksThatAre([]string{ap, av}, []string{ap, pr, de}, nil)...)
	second := ofPlacement(5, 1, 0, func(p *placed) { p.name, p.decided.groupCount, p.plan = "q", 3, rolloutstrategy.Plan{} })
	got := desiredStatus(replicaSet("a", "web"), []*placed{ofPlacement(2, 2, 1, nil), second, {name: "gone"}}, works, "")
	want := workv1alpha1.ManifestWorkReplicaSetStatus{
		Conditions: got.Conditions,
		Summary:    workv1alpha1.ManifestWorkReplicaSetSummary{Total: 3, Applied: 2, Available: 1, Progressing: 1, Degraded: 1},
		PlacementsSummary: []workv1alpha1.PlacementSummary{
			{Name: "p", AvailableDecisionGroups: "1 (2 / 2 clusters applied)", Summary: workv1alpha1.ManifestWorkReplicaSetSummary{Total: 2}},
			{Name: "q", AvailableDecisionGroups: "3 (1 / 5 clusters applied)", Summary: workv1alpha1.ManifestWorkReplicaSetSummary{Total: 1}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("desiredStatus() (-want +got):\n%s", diff)
	}
}

func TestResults_RetryFailedWrites(t *testing.T) {
	works := schema.GroupResource{Resource: "manifestworks"}
	missing, conflict := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "c1"), apierrors.NewConflict(works, "a", nil)
	down := errors.New("no answer")
	for name, tc := range map[string]struct {
		results results
		message string
		after   bool
		err     error
	}{
		"all went well":       {results: results{nil, nil}},
		"somebody wrote":      {results: results{conflict}, after: true},
		"a namespace lacks":   {results: results{nil, missing}, message: `namespaces "c1" not found`, after: true},
		"it is another's":     {results: results{errNotOwned(&workv1.ManifestWork{})}, message: "ManifestWork / is not of this ManifestWorkReplicaSet: rename one of the two, or delete it", after: true},
		"hub is unreachable":  {results: results{down, conflict}, message: "no answer", after: true, err: down},
		"more than are named": {results: results{down, down, down, down, down}, message: "no answer; no answer; no answer; and 2 more", err: down},
	} {
		after, err := tc.results.retry()
		if message := tc.results.message(); message != tc.message || (after > 0) != tc.after || !errors.Is(err, tc.err) {
			t.Errorf("%s: told %q, after %s, error %v", name, message, after, err)
		}
	}
}
