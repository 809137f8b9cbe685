// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// clusters names n clusters.
func clusters(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("c%02d", i)
	}
	return names
}

// step is a decision for ten clusters that all have a ManifestWork.
type step struct {
	version  string
	selected int
	// confirmed is the confirmation of the removal.
	confirmed bool
	// settled is that the scheduler has said that this is its decision for the version.
	settled bool
}

func TestSuspendRemoval(t *testing.T) {
	for name, tc := range map[string]struct {
		steps []step
		// suspends is for the last step.
		suspends bool
	}{
		"keeps clusters that the Placement loses without a change of its spec": {[]step{{"1", 10, false, false}, {"1", 4, false, false}}, true},
		"removes few clusters":                                             {[]step{{"1", 10, false, false}, {"1", 6, false, false}}, false},
		"removes clusters when the spec changed":                           {[]step{{"1", 10, false, false}, {"2", 0, false, false}}, false},
		"removes clusters that a confirmation names":                       {[]step{{"1", 10, false, false}, {"1", 4, true, false}}, false},
		"continues a removal that has begun":                               {[]step{{"1", 10, false, false}, {"2", 0, false, false}, {"2", 0, false, false}}, false},
		"keeps clusters if the spec changed long before":                   {[]step{{"1", 9, false, false}, {"2", 10, false, false}, {"2", 0, false, false}}, true},
		"removes clusters when the decision for a changed spec comes late": {[]step{{"1", 10, false, false}, {"2", 10, false, false}, {"2", 0, false, false}}, false},
		"keeps clusters if the spec changed without an effect":             {[]step{{"1", 10, false, false}, {"2", 10, false, true}, {"2", 0, false, false}}, true},
		"keeps clusters if it does not know the previous decision":         {[]step{{"1", 0, false, false}}, true},
		"keeps clusters until the decision returns":                        {[]step{{"1", 10, false, false}, {"1", 0, false, false}, {"1", 10, false, false}, {"1", 10, false, false}}, false},
		"keeps clusters again after they were selected in between":         {[]step{{"1", 10, false, false}, {"1", 0, false, false}, {"1", 10, false, false}, {"1", 0, false, false}}, true},
		"removes clusters when the spec changes during a suspension":       {[]step{{"1", 10, false, false}, {"1", 0, false, false}, {"2", 0, false, false}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := deciding(t)
			var message string
			for _, s := range tc.steps {
				message = decide(t, r, s)
			}
			if (message != "") != tc.suspends {
				t.Errorf("suspended: %q, want %t", message, tc.suspends)
			}
		})
	}
}

// deciding is a Reconciler of a hub with one set and these other objects.
func deciding(t *testing.T, others ...client.Object) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1.AddToScheme, workv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web"}}
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(others, set)...).Build()
	return &Reconciler{Client: hub, Clock: testingclock.NewFakePassiveClock(time.Now())}
}

// decide has r follow a decision, and returns why it suspends the removal.
func decide(t *testing.T, r *Reconciler, s step) string {
	t.Helper()
	set := &workv1alpha1.ManifestWorkReplicaSet{}
	if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, set); err != nil {
		t.Fatal(err)
	}
	all := clusters(10)
	var leaving []*workv1.ManifestWork
	for _, name := range all[s.selected:] {
		leaving = append(leaving, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "web"}})
	}
	if s.confirmed {
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, placementv1beta1.ConfirmRemovalAnnotation, placementv1beta1.RemovalToken(all[s.selected:]))
	}
	p := &placed{name: "p", decided: &decided{version: s.version, settled: s.settled, clusters: sets.New(all[:s.selected]...)}}
	message, err := r.suspendRemoval(t.Context(), set, p, leaving, len(all))
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func TestRemoveUnnamed_WaitsForReplacement(t *testing.T) {
	const before = "2 ManifestWorks of Placements that are no longer named are retained until others replace them: "
	missing := &placed{name: "new"}
	incomplete := ofPlacement(2, 0, 0, func(p *placed) { p.name, p.decided.short = "new", "it has no status yet" })
	decided := func(applied ...string) *placed {
		return ofPlacement(0, 0, 0, func(p *placed) {
			p.name = "new"
			p.decided.clusters.Insert("c00", "c01")
			p.applied.Insert(applied...)
		})
	}
	for name, tc := range map[string]struct {
		all     []*placed
		removed []string
		message string
	}{
		"Placement does not exist yet":           {[]*placed{missing}, nil, before + `there is no Placement "new"`},
		"Placement has no decisions yet":         {[]*placed{incomplete}, nil, before + `Placement "new": it has no status yet`},
		"rollout has not begun":                  {[]*placed{decided()}, nil, before + `the ManifestWork of Placement "new" in namespace "c00" is not applied yet`},
		"rollout has reached one cluster":        {[]*placed{decided("c00")}, []string{"c00"}, "1" + before[1:] + `the ManifestWork of Placement "new" in namespace "c01" is not applied yet`},
		"rollout has reached all clusters":       {[]*placed{decided("c00", "c01")}, []string{"c00", "c01"}, ""},
		"Placement selects none of the clusters": {[]*placed{ofPlacement(0, 0, 0, nil)}, []string{"c00", "c01"}, ""},
		"one of two Placements has decided":      {[]*placed{decided("c00", "c01"), missing}, nil, before + `there is no Placement "new"`},
	} {
		var works []*workv1.ManifestWork
		for _, cluster := range clusters(2) {
			works = append(works, &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "web"}})
		}
		changes := &changes{left: map[workName]bool{}}
		message := removeUnnamed(works, tc.all, changes)
		var removed []string
		for _, work := range changes.drop {
			removed = append(removed, work.Namespace)
		}
		if message != tc.message || !slices.Equal(removed, tc.removed) {
			t.Errorf("%s: removed %v, message %q", name, removed, message)
		}
	}
}

func TestSuspendRemoval_CountsNoDeletedClusters(t *testing.T) {
	var objects []client.Object
	for _, name := range clusters(10)[:9] {
		objects = append(objects, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	r := deciding(t, objects...)
	r.limited.Store(true)
	decide(t, r, step{"1", 10, false, false})
	if message := decide(t, r, step{"1", 5, false, false}); message != "" {
		t.Errorf("four clusters that exist and one that was deleted are suspended: %s", message)
	}
	if message := decide(t, r, step{"1", 4, false, false}); !strings.Contains(message, `Placement "p" no longer selects 5 of 10 clusters although its spec did not change: c04, c05, c06, c07, c08.`) {
		t.Errorf("message %q", message)
	}
}

func TestSuspendRemoval_CountsSmallRemovalsWithinTenMinutesTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		every time.Duration
		// suspendsAt is the number of clusters that have a ManifestWork when the next removal waits; 0 if none does.
		suspendsAt int
	}{
		"one a minute":      {time.Minute, 6},
		"one every 5 hours": {5 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := deciding(t)
			begin, all := r.Clock.Now(), clusters(10)
			decide(t, r, step{"1", 10, false, false})
			at := 0
			for n := 10; n > 0 && at == 0; n-- {
				set := &workv1alpha1.ManifestWorkReplicaSet{}
				if err := r.Client.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, set); err != nil {
					t.Fatal(err)
				}
				r.Clock = testingclock.NewFakePassiveClock(begin.Add(time.Duration(10-n) * tc.every))
				p := &placed{name: "p", decided: &decided{version: "1", clusters: sets.New(all[:n-1]...)}}
				leaving := []*workv1.ManifestWork{{ObjectMeta: metav1.ObjectMeta{Namespace: all[n-1], Name: "web"}}}
				message, err := r.suspendRemoval(t.Context(), set, p, leaving, n)
				if err != nil {
					t.Fatal(err)
				}
				if message != "" {
					at = n
					if want := `no longer selects 1 of 6 clusters after 4 others within 10m although its spec did not change: c05.`; !strings.Contains(message, want) {
						t.Errorf("message %q, want %q", message, want)
					}
				}
			}
			if at != tc.suspendsAt {
				t.Errorf("suspended with %d clusters, want %d", at, tc.suspendsAt)
			}
		})
	}
}
