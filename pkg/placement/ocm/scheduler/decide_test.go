// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler/clustercel"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func managed(name string, change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ClusterSetLabel: "set"}}}
	if change != nil {
		change(object)
	}
	return object
}

// cacheOf has one set of all these clusters, bound to namespace team.
func cacheOf(clusters ...*clusterv1.ManagedCluster) *clusterCache {
	r := newClusterCache()
	r.setSet("set", &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}})
	r.setBinding("team", "set", true)
	for _, cluster := range clusters {
		r.setCluster(cluster)
	}
	return r
}

func placed(change func(*ocmclusterv1beta1.PlacementSpec)) *ocmclusterv1beta1.Placement {
	placement := &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p", UID: "uid", Generation: 1}}
	if change != nil {
		change(&placement.Spec)
	}
	return placement
}

func mustParse(t testing.TB, placement *ocmclusterv1beta1.Placement) *parsedPlacement {
	t.Helper()
	compiler, err := clustercel.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	w := parsePlacement(placement, compiler)
	if w.wrong != "" {
		t.Fatal(w.wrong)
	}
	return w
}

// decisionsOf are the PlacementDecisions of a result.
func decisionsOf(o *result) []*ocmclusterv1beta1.PlacementDecision {
	var all []*ocmclusterv1beta1.PlacementDecision
	for i := range o.slices {
		s := &o.slices[i]
		all = append(all, &ocmclusterv1beta1.PlacementDecision{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: s.name, Labels: s.labels("p")}, Status: ocmclusterv1beta1.PlacementDecisionStatus{Decisions: s.decisions},
		})
	}
	return all
}

func one(spec *ocmclusterv1beta1.PlacementSpec) {
	n := int32(1)
	spec.NumberOfClusters = &n
}

func byUsage(spec *ocmclusterv1beta1.PlacementSpec) {
	spec.PrioritizerPolicy = ocmclusterv1beta1.PrioritizerPolicy{Mode: ocmclusterv1beta1.ModeExact, Configurations: []ocmclusterv1beta1.PrioritizerConfig{{
		ScoreCoordinate: ocmclusterv1beta1.ScoreCoordinate{Type: ocmclusterv1beta1.CoordinateAddOn, AddOn: &ocmclusterv1beta1.AddOnScore{ResourceName: "usage", ScoreName: "cpu"}}, Weight: 1,
	}}}
}

func sheet(cluster string, value int32, until *metav1.Time) *clusterv1alpha1.AddOnPlacementScore {
	return &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: "usage"},
		Status: clusterv1alpha1.AddOnPlacementScoreStatus{Scores: []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: value}}, ValidUntil: until}}
}

// A placement that tolerates a taint for 300 s stays after 299 s and has moved after 301 s, and is
// reconciled in between.
func TestDecide_MovesWhenTolerationEnds(t *testing.T) {
	seconds, until := int64(300), metav1.NewTime(noon.Add(300*time.Second))
	tainted := managed("c1", func(c *clusterv1.ManagedCluster) {
		c.Spec.Taints = []clusterv1.Taint{{Key: clusterv1.TaintUnreachable, Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(noon)}}
	})
	tolerating := placed(func(spec *ocmclusterv1beta1.PlacementSpec) {
		one(spec)
		spec.Tolerations = []ocmclusterv1beta1.Toleration{{Key: clusterv1.TaintUnreachable, Operator: ocmclusterv1beta1.OperatorExists, TolerationSeconds: &seconds}}
	})
	scoring := placed(func(spec *ocmclusterv1beta1.PlacementSpec) { one(spec); byUsage(spec) })
	scored := cacheOf(managed("c1", nil), managed("c2", nil))
	scored.setSheet("c1", "usage", sheet("c1", -5, &until))
	for name, tc := range map[string]struct {
		cache       *clusterCache
		placement   *ocmclusterv1beta1.Placement
		first, then string
	}{
		"a toleration": {cacheOf(tainted, managed("c2", nil)), tolerating, "c1", "c2"},
		"a score":      {scored, scoring, "c2", "c1"},
	} {
		w := mustParse(t, tc.placement)
		existing := decisionsOf(decide(tc.placement, w, tc.cache.availableTo("team", w), 0, noon, nil))
		if got := clustersOf(existing[0]); !slices.Equal(got, []string{tc.first}) {
			t.Fatalf("%s: %v at first, want %s", name, got, tc.first)
		}
		for _, step := range []struct {
			after int
			want  string
			again bool
		}{{299, tc.first, true}, {300, tc.then, false}, {301, tc.then, false}} {
			o := decide(tc.placement, w, tc.cache.availableTo("team", w), 0, noon.Add(time.Duration(step.after)*time.Second), existing)
			if got := o.slices[0].clusters(); !slices.Equal(got, []string{step.want}) {
				t.Errorf("%s: after %d s %v, want %s", name, step.after, got, step.want)
			}
			want := time.Time{}
			if step.again {
				want = noon.Add(300 * time.Second)
			}
			if !o.again.Equal(want) {
				t.Errorf("%s: after %d s again at %v, want %v", name, step.after, o.again, want)
			}
		}
	}
}

func TestDecide_LimitsRateOfScoreUpdates(t *testing.T) {
	placement := placed(func(spec *ocmclusterv1beta1.PlacementSpec) {
		byUsage(spec)
		spec.SortBy, spec.ScoreRateLimit = ocmclusterv1beta1.SortByScore, "1m"
	})
	w, r := mustParse(t, placement), cacheOf(managed("c1", nil), managed("c2", nil))
	r.setSheet("c1", "usage", sheet("c1", 5, nil))
	first := decide(placement, w, r.availableTo("team", w), 0, noon, nil)
	placement.Status = first.status(placement, noon)
	existing := decisionsOf(first)
	r.setSheet("c2", "usage", sheet("c2", 9, nil))
	soon := decide(placement, w, r.availableTo("team", w), 0, noon.Add(59*time.Second), existing)
	if got := soon.slices[0].clusters(); !slices.Equal(got, []string{"c1", "c2"}) || !soon.again.Equal(noon.Add(time.Minute)) {
		t.Errorf("after 59 s %v, again at %v", got, soon.again)
	}
	late := decide(placement, w, r.availableTo("team", w), 0, noon.Add(time.Minute), existing)
	if got := late.slices[0].clusters(); !slices.Equal(got, []string{"c2", "c1"}) || *late.slices[0].decisions[0].Score != 9 {
		t.Errorf("after a minute %v", late.slices[0].decisions)
	}
	r.setCluster(managed("c3", nil))
	joined := decide(placement, w, r.availableTo("team", w), 0, noon.Add(time.Second), existing)
	if got := joined.slices[0].clusters(); !slices.Equal(got, []string{"c2", "c1", "c3"}) {
		t.Errorf("a cluster that comes waits: %v", got)
	}
}

func TestConcernedBy_FindsPlacementsOfAChange(t *testing.T) {
	was := managed("c1", func(c *clusterv1.ManagedCluster) { c.Labels["env"] = "prod" })
	changed := func(change func(*clusterv1.ManagedCluster)) *clusterv1.ManagedCluster {
		is := was.DeepCopy()
		change(is)
		return is
	}
	require := func(change func(*ocmclusterv1beta1.ClusterSelector)) func(*ocmclusterv1beta1.PlacementSpec) {
		return func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
			change(&spec.Predicates[0].RequiredClusterSelector)
		}
	}
	specs := map[string]func(*ocmclusterv1beta1.PlacementSpec){
		"any":  func(*ocmclusterv1beta1.PlacementSpec) {},
		"else": func(spec *ocmclusterv1beta1.PlacementSpec) { spec.ClusterSets = []string{"other"} },
		"label": require(func(s *ocmclusterv1beta1.ClusterSelector) {
			s.LabelSelector.MatchLabels = map[string]string{"env": "prod"}
		}),
		"claim": require(func(s *ocmclusterv1beta1.ClusterSelector) {
			s.ClaimSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "region", Operator: metav1.LabelSelectorOpExists}}
		}),
		"expression": require(func(s *ocmclusterv1beta1.ClusterSelector) {
			s.CELSelector.CELExpressions = []string{`managedCluster.status.version.kubernetes != ""`}
		}),
		"resources": func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.PrioritizerPolicy.Configurations = []ocmclusterv1beta1.PrioritizerConfig{{ScoreCoordinate: ocmclusterv1beta1.ScoreCoordinate{BuiltIn: "ResourceAllocatableCPU"}, Weight: 1}}
		},
		"score": byUsage,
		"topology": func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.SpreadPolicy.SpreadConstraints = []ocmclusterv1beta1.SpreadConstraint{{TopologyKey: "zone", TopologyKeyType: ocmclusterv1beta1.TopologyLabel}}
		},
		"group": func(spec *ocmclusterv1beta1.PlacementSpec) {
			spec.DecisionStrategy.GroupStrategy.DecisionGroups = []ocmclusterv1beta1.DecisionGroup{named("g", map[string]string{"canary": "true"})}
		},
	}
	all := "any claim expression group label resources score topology"
	for name, tc := range map[string]struct {
		is   *clusterv1.ManagedCluster
		want string
	}{
		"nothing":       {changed(func(*clusterv1.ManagedCluster) {}), ""},
		"another label": {changed(func(c *clusterv1.ManagedCluster) { c.Labels["colour"] = "red" }), ""},
		"a condition":   {changed(func(c *clusterv1.ManagedCluster) { c.Status.Conditions = []metav1.Condition{{Type: "x"}} }), ""},
		"its label":     {changed(func(c *clusterv1.ManagedCluster) { delete(c.Labels, "env") }), "label"},
		"its zone":      {changed(func(c *clusterv1.ManagedCluster) { c.Labels["zone"] = "a" }), "topology"},
		"its group":     {changed(func(c *clusterv1.ManagedCluster) { c.Labels["canary"] = "true" }), "group"},
		"a claim": {changed(func(c *clusterv1.ManagedCluster) {
			c.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "region", Value: "eu"}}
		}), "claim"},
		"its version": {changed(func(c *clusterv1.ManagedCluster) { c.Status.Version.Kubernetes = "v1" }), "expression"},
		"its CPU": {changed(func(c *clusterv1.ManagedCluster) {
			c.Status.Allocatable = clusterv1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}), "resources"},
		"something it has": {changed(func(c *clusterv1.ManagedCluster) {
			c.Status.Allocatable = clusterv1.ResourceList{"gpu": resource.MustParse("1")}
		}), ""},
		"a taint":               {changed(func(c *clusterv1.ManagedCluster) { c.Spec.Taints = []clusterv1.Taint{{Key: "x"}} }), all},
		"that it is leaving":    {changed(func(c *clusterv1.ManagedCluster) { c.DeletionTimestamp = &metav1.Time{Time: noon} }), all},
		"the set that it is in": {changed(func(c *clusterv1.ManagedCluster) { c.Labels[clusterv1.ClusterSetLabel] = "x" }), all},
	} {
		r := cacheOf(was)
		for name, change := range specs {
			placement := placed(change)
			r.setParsed(types.NamespacedName{Namespace: "team", Name: name}, mustParse(t, placement))
			r.setParsed(types.NamespacedName{Namespace: "unbound", Name: name}, mustParse(t, placement))
		}
		if got := namesIn(r.concernedBy(r.setCluster(tc.is))); got != tc.want {
			t.Errorf("%s concerns %q, want %q", name, got, tc.want)
		}
	}
}

func namesIn(keys []types.NamespacedName) string {
	names := sets.New[string]()
	for _, key := range keys {
		if key.Namespace != "team" {
			names.Insert(key.String())
			continue
		}
		names.Insert(key.Name)
	}
	return strings.Join(sets.List(names), " ")
}

func TestConcernedBySet_FindsPlacementsOfASet(t *testing.T) {
	selecting := func(selector *metav1.LabelSelector) *clusterv1beta2.ManagedClusterSet {
		set := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
		set.Spec.ClusterSelector = clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: selector}
		return set
	}
	exclusive, prod := &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	for name, tc := range map[string]struct {
		was, is *clusterv1beta2.ManagedClusterSet
		want    bool
	}{
		"it comes":                     {nil, exclusive, true},
		"it goes":                      {exclusive, nil, true},
		"it was not there":             {nil, nil, false},
		"the same":                     {selecting(prod), selecting(prod), false},
		"other labels":                 {exclusive, selecting(prod), true},
		"all clusters instead of some": {selecting(prod), selecting(&metav1.LabelSelector{}), true},
		"all clusters instead of none": {selecting(nil), selecting(&metav1.LabelSelector{}), true},
		"a selector that cannot be read, of none": {selecting(nil), selecting(&metav1.LabelSelector{MatchLabels: map[string]string{"-": "-"}}), false},
	} {
		r := newClusterCache()
		r.setSet("set", tc.was)
		if got := r.setSet("set", tc.is); got != tc.want {
			t.Errorf("%s: changed %t, want %t", name, got, tc.want)
		}
	}
}

// Two Placements reported permanently that no set was bound, although one was that they do not
// choose from.
func TestConcernedBySet_IncludesPlacementsWithoutEligibleSet(t *testing.T) {
	set := func(name string) *clusterv1beta2.ManagedClusterSet {
		return &clusterv1beta2.ManagedClusterSet{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	of := func(names ...string) func(*ocmclusterv1beta1.PlacementSpec) {
		return func(spec *ocmclusterv1beta1.PlacementSpec) { spec.ClusterSets = names }
	}
	r := newClusterCache()
	for name, spec := range map[string]func(*ocmclusterv1beta1.PlacementSpec){"any": nil, "a": of("a"), "b": of("b"), "c": of("c")} {
		r.setParsed(types.NamespacedName{Namespace: "team", Name: name}, mustParse(t, placed(spec)))
	}
	for _, step := range []struct {
		what string
		do   func() []types.NamespacedName
		want string
	}{
		{"a comes, bound nowhere", func() []types.NamespacedName { r.setSet("a", set("a")); return r.concernedBySet("a", "") }, ""},
		{"a is bound", func() []types.NamespacedName { r.setBinding("team", "a", true); return r.concernedBySet("a", "team") }, "a any b c"},
		{"b comes, bound nowhere", func() []types.NamespacedName { r.setSet("b", set("b")); return r.concernedBySet("b", "") }, ""},
		{"b is bound: c has none still", func() []types.NamespacedName { r.setBinding("team", "b", true); return r.concernedBySet("b", "team") }, "any b c"},
		{"a goes", func() []types.NamespacedName { r.setSet("a", nil); return r.concernedBySet("a", "") }, "a any c"},
		{"b is not bound any more", func() []types.NamespacedName { r.setBinding("team", "b", false); return r.concernedBySet("b", "team") }, "a any b c"},
	} {
		if got := namesIn(step.do()); got != step.want {
			t.Errorf("%s: concerns %q, want %q", step.what, got, step.want)
		}
	}
}

func TestConcernedBySheet_FindsPlacementsOfAScore(t *testing.T) {
	at := func(seconds int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(seconds) * time.Second)}
	}
	asking := func(spec *ocmclusterv1beta1.PlacementSpec) {
		spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
		spec.Predicates[0].RequiredClusterSelector.CELSelector.CELExpressions = []string{`managedCluster.scores("usage").all(s, s.value < 50)`}
	}
	silent := sheet("c1", 0, nil)
	silent.Status.Scores = nil
	for name, tc := range map[string]struct {
		was, is *clusterv1alpha1.AddOnPlacementScore
		want    string
	}{
		"it comes":                  {nil, sheet("c1", 3, nil), "asking scoring"},
		"it comes and says zero":    {nil, sheet("c1", 0, nil), "asking"},
		"it comes without a score":  {nil, silent, "asking"},
		"it goes without a score":   {silent, nil, "asking"},
		"it goes":                   {sheet("c1", 3, nil), nil, "asking scoring"},
		"another value":             {sheet("c1", 3, nil), sheet("c1", 4, nil), "asking scoring"},
		"the same":                  {sheet("c1", 3, at(9)), sheet("c1", 3, at(9)), ""},
		"it is valid for longer":    {sheet("c1", 3, at(9)), sheet("c1", 3, at(99)), ""},
		"it is valid for less long": {sheet("c1", 3, at(99)), sheet("c1", 3, at(9)), "scoring"},
		"it ends now, not never":    {sheet("c1", 3, nil), sheet("c1", 3, at(9)), "scoring"},
		"it is valid again":         {sheet("c1", 3, at(-9)), sheet("c1", 3, at(9)), "scoring"},
		"it has expired":            {sheet("c1", 3, at(9)), sheet("c1", 3, at(-9)), "scoring"},
		"a cluster that nobody has": {nil, sheet("c2", 3, nil), ""},
	} {
		r := cacheOf(managed("c1", nil))
		r.setParsed(types.NamespacedName{Namespace: "team", Name: "scoring"}, mustParse(t, placed(byUsage)))
		r.setParsed(types.NamespacedName{Namespace: "team", Name: "other"}, mustParse(t, placed(nil)))
		r.setParsed(types.NamespacedName{Namespace: "team", Name: "asking"}, mustParse(t, placed(asking)))
		cluster := "c1"
		if tc.is != nil {
			cluster = tc.is.Namespace
		}
		r.setSheet(cluster, "usage", tc.was)
		was, is := r.setSheet(cluster, "usage", tc.is)
		if got := namesIn(r.concernedBySheet(cluster, "usage", was, is, noon)); got != tc.want {
			t.Errorf("%s: concerns %q, want %q", name, got, tc.want)
		}
	}
}

func TestDecisionIndex_CountsPendingWritesAndIgnoresTheirEvents(t *testing.T) {
	decided := func(version string, clusters ...string) *ocmclusterv1beta1.PlacementDecision {
		d := &ocmclusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "p-decision-1", ResourceVersion: version,
			Labels: map[string]string{ocmclusterv1beta1.PlacementLabel: "p"}}}
		for _, cluster := range clusters {
			d.Status.Decisions = append(d.Status.Decisions, ocmclusterv1beta1.ClusterDecision{ClusterName: cluster})
		}
		return d
	}
	decisions, key, other := newDecisionIndex(), types.NamespacedName{Namespace: "team", Name: "p-decision-1"}, types.NamespacedName{Namespace: "team", Name: "other"}
	count := func() string {
		counts, most := decisions.others(other)
		return fmt.Sprint(counts("a"), counts("b"), most)
	}
	decisions.expect(key, contentOf(decided("", "a")), false)
	if got := count(); got != "1 0 1" {
		t.Errorf("before it is written %s", got)
	}
	if got, _ := decisions.others(types.NamespacedName{Namespace: "team", Name: "p"}); got("a") != 0 {
		t.Error("its own decision counts for itself")
	}
	if got := decisions.see(decided("5"), false); len(got) > 0 || count() != "1 0 1" {
		t.Errorf("that it was made without its status is news to %v", got)
	}
	decisions.wrote(key, decided("6", "a"))
	for _, version := range []string{"5", "6", "6"} {
		is := decided(version, "a")
		if version == "5" {
			is = decided(version)
		}
		if got := decisions.see(is, false); len(got) > 0 {
			t.Errorf("what was written is news to %v", got)
		}
	}
	if got := namesIn(decisions.see(decided("7", "b"), false)); got != "p" || count() != "0 1 1" {
		t.Errorf("what another wrote is news to %q, %s", got, count())
	}
	decisions.expect(key, content{placement: "p"}, true)
	if got := decisions.see(decided("8", "b"), true); len(got) > 0 || count() != "0 0 0" {
		t.Errorf("what was removed is news to %v, %s", got, count())
	}
	decisions.see(decided("9", "a", "b"), false)
	if got := namesIn(decisions.see(decided("9", "a", "b"), true)); got != "p" || count() != "0 0 0" {
		t.Errorf("what another removed is news to %q, %s", got, count())
	}
}
