// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/ocm/rolloutstrategy"
)

var (
	deploys = kind{Group: addonv1alpha1.GroupName, Resource: "addondeploymentconfigs"}
	foos    = kind{Resource: "foos"}
)

func named(name string) referent { return referent{Namespace: "default", Name: name} }

func hashed(name, hash string) *version {
	return &version{ConfigReferent: named(name), SpecHash: hash}
}

// bench is an add-on with a default configuration, of which each Placement overrides the name.
type bench struct {
	addOn   *addonv1alpha1.ClusterManagementAddOn
	decided []*objects.Decided
	addOns  map[string]*addonv1alpha1.ManagedClusterAddOn
	absent  sets.Set[string]
	now     time.Time
}

func newBench() *bench {
	b := &bench{addOn: &addonv1alpha1.ClusterManagementAddOn{}, addOns: map[string]*addonv1alpha1.ManagedClusterAddOn{}, now: time.Unix(1000, 0)}
	referent := named("default")
	b.addOn.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{ConfigGroupResource: deploys, DefaultConfig: &referent}, {ConfigGroupResource: foos}}
	b.addOn.Spec.InstallStrategy.Type = addonv1alpha1.InstallPlacements
	return b
}

// placement adds a Placement that gives its clusters a configuration with the hash "h".
func (b *bench) placement(config string, rollout clusterv1alpha1.RolloutStrategy, clusters ...string) *bench {
	strategy := addonv1alpha1.PlacementStrategy{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "default", Name: fmt.Sprint("p", len(b.decided))}, RolloutStrategy: rollout}
	strategy.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: deploys, ConfigReferent: named(config)}}
	b.addOn.Spec.InstallStrategy.Placements = append(b.addOn.Spec.InstallStrategy.Placements, strategy)
	b.addOn.Status.InstallProgressions = append(b.addOn.Status.InstallProgressions, addonv1alpha1.InstallProgression{
		PlacementRef: strategy.PlacementRef, ConfigReferences: []addonv1alpha1.InstallConfigReference{{ConfigGroupResource: deploys, DesiredConfig: hashed(config, "h")}},
	})
	b.decided = append(b.decided, &objects.Decided{
		Clusters: sets.New(clusters...), Groups: []rolloutstrategy.Group{{Clusters: clusters}}, Placement: &ocmclusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{UID: "u"}},
	})
	return b
}

// cluster adds an add-on that was given a configuration, and says how far it is.
func (b *bench) cluster(cluster, config, hash, reason string, since time.Duration) *addonv1alpha1.ManagedClusterAddOn {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: cluster}}
	if config != "" {
		reference := addonv1alpha1.ConfigReference{ConfigGroupResource: deploys, ConfigReferent: named(config), DesiredConfig: hashed(config, hash)}
		if reason == addonv1alpha1.ReasonCompleted {
			reference.LastAppliedConfig = hashed(config, hash)
		}
		addOn.Status.ConfigReferences = []addonv1alpha1.ConfigReference{reference}
	}
	if reason != "" {
		addOn.Status.Conditions = []metav1.Condition{{Type: addonv1alpha1.ConditionProgressing, Reason: reason, LastTransitionTime: metav1.NewTime(b.now.Add(-since))}}
	}
	b.addOns[cluster] = addOn
	return addOn
}

// graph is computed from the status with the configurations that the spec names.
func (b *bench) graph() (*graph, *addonv1alpha1.ClusterManagementAddOnStatus) {
	status := b.addOn.Status.DeepCopy()
	desiredReferences(status, b.addOn)
	in := inputs{status: status, addOns: b.addOns, now: b.now, exists: func(cluster string) bool { return !b.absent.Has(cluster) }}
	for i, strategy := range b.addOn.Spec.InstallStrategy.Placements {
		in.placements = append(in.placements, placed{strategy: strategy, decided: b.decided[i]})
	}
	return graphOf(in), status
}

// result is the configurations of each cluster afterwards, whether it is configured, and the
// condition of each Placement.
func (b *bench) result() (clusters, conditions []string, next time.Time) {
	g, status := b.graph()
	changes := g.changes()
	for _, cluster := range sets.List(sets.KeySet(b.addOns)) {
		after := b.addOns[cluster].DeepCopy()
		if change := changes[b.addOns[cluster]]; change != nil {
			change(&after.Status)
		}
		text := cluster + ":"
		for _, reference := range after.Status.ConfigReferences {
			text += " " + reference.Resource[:1] + "/" + reference.Name + "@" + reference.DesiredConfig.SpecHash
		}
		if configured := meta.FindStatusCondition(after.Status.Conditions, addonv1alpha1.ConditionConfigured); configured != nil {
			text += " " + string(configured.Status)
		}
		clusters = append(clusters, text)
	}
	for i, n := range g.nodes {
		report(&status.InstallProgressions[i], n.refused, n.count(b.now))
		condition := status.InstallProgressions[i].Conditions[0]
		conditions = append(conditions, condition.Reason+": "+condition.Message)
	}
	return clusters, conditions, g.next()
}

func TestGraph_ChangesNothingThatIsUpToDate(t *testing.T) {
	b := newBench().placement("first", oneByOne(clusterv1alpha1.RolloutConfig{}), "a", "b")
	b.cluster("a", "first", "before", addonv1alpha1.ReasonCompleted, time.Hour)
	b.cluster("b", "first", "before", addonv1alpha1.ReasonCompleted, time.Hour)
	for _, want := range []int{2, 0} {
		g, _ := b.graph()
		changes := g.changes()
		if len(changes) != want {
			t.Fatalf("%d changes, want %d", len(changes), want)
		}
		for addOn, change := range changes {
			change(&addOn.Status)
		}
	}
}

func (b *bench) expect(t *testing.T, clusters, conditions []string) {
	t.Helper()
	gotClusters, gotConditions, _ := b.result()
	if diff := cmp.Diff(clusters, gotClusters); diff != "" {
		t.Errorf("clusters (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(conditions, gotConditions); diff != "" {
		t.Errorf("conditions (-want +got)\n%s", diff)
	}
}

func all() clusterv1alpha1.RolloutStrategy { return clusterv1alpha1.RolloutStrategy{Type: "All"} }

func oneByOne(config clusterv1alpha1.RolloutConfig) clusterv1alpha1.RolloutStrategy {
	return clusterv1alpha1.RolloutStrategy{Type: "Progressive", Progressive: &clusterv1alpha1.RolloutProgressiveConfig{RolloutConfig: config, MaxConcurrency: intstr.FromInt32(1)}}
}

func TestGraph_ConfigurationsComeFromTheFirstSourceThatHasAny(t *testing.T) {
	b := newBench().placement("first", all(), "a", "b", "c").placement("second", all(), "b", "c")
	b.addOn.Status.DefaultConfigReferences = []addonv1alpha1.DefaultConfigReference{{ConfigGroupResource: deploys, DesiredConfig: hashed("default", "d")}}
	for _, cluster := range []string{"a", "b", "d"} {
		b.cluster(cluster, "", "", "", 0)
	}
	own := b.cluster("c", "own", "o", addonv1alpha1.ReasonProgressing, 0)
	own.Spec.Configs = []addonv1alpha1.AddOnConfig{
		{ConfigGroupResource: deploys, ConfigReferent: named("own")}, {ConfigGroupResource: foos, ConfigReferent: named("x")}, {ConfigGroupResource: foos, ConfigReferent: named("w")},
		{ConfigGroupResource: foos, ConfigReferent: named("x")},
	}
	b.expect(t, []string{"a: a/first@h True", "b: a/second@h True", "c: f/x@ f/w@ a/own@o True", "d: a/default@d True"}, []string{
		"Progressing: selected clusters 3. configured addons 1/1 progressing..., 0 failed 0 timeout.",
		"Progressing: selected clusters 2. configured addons 2/2 progressing..., 0 failed 0 timeout.",
	})
}

func TestGraph_CompletesWithConfigurationsOfTheClusterItself(t *testing.T) {
	b := newBench().placement("one", all(), "a", "b")
	b.cluster("a", "one", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	own := b.cluster("b", "own", "o", addonv1alpha1.ReasonCompleted, time.Minute)
	own.Spec.Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: deploys, ConfigReferent: named("own")}}
	b.expect(t, []string{"a: a/one@h True", "b: a/own@o True"}, []string{"Completed: selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout."})
}

func TestGraph_DoesNotCompleteBeforeAllAddOnsExist(t *testing.T) {
	b := newBench().placement("one", all(), "a", "b")
	b.cluster("a", "one", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.expect(t, []string{"a: a/one@h True"}, []string{"Progressing: selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout."})
	b.absent = sets.New("b")
	b.expect(t, []string{"a: a/one@h True"}, []string{"Completed: selected clusters 2. configured addons 1/1 completed with no errors, 0 failed 0 timeout."})
}

func TestGraph_CompletesWhenAllClustersHaveApplied(t *testing.T) {
	b := newBench().placement("one", all(), "a", "b")
	b.cluster("a", "one", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.cluster("b", "one", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.expect(t, []string{"a: a/one@h True", "b: a/one@h True"}, []string{"Completed: selected clusters 2. configured addons 2/2 completed with no errors, 0 failed 0 timeout."})
	status := b.addOn.Status.DeepCopy()
	report(&status.InstallProgressions[0], "", counts{selected: 2, configured: 2, done: 2})
	if reference := status.InstallProgressions[0].ConfigReferences[0]; *reference.LastAppliedConfig != *hashed("one", "h") || *reference.LastKnownGoodConfig != *hashed("one", "h") {
		t.Errorf("got %+v", reference)
	}
}

func TestGraph_RollsOutOneByOne(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{}), "a", "b", "c")
	b.cluster("a", "new", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.cluster("b", "old", "o", addonv1alpha1.ReasonCompleted, time.Minute)
	b.cluster("c", "old", "o", addonv1alpha1.ReasonCompleted, time.Minute)
	b.expect(t, []string{"a: a/new@h True", "b: a/new@h True", "c: a/old@o False"},
		[]string{"Progressing: selected clusters 3. configured addons 2/3 progressing..., 0 failed 0 timeout."})

	b.cluster("b", "new", "h", addonv1alpha1.ReasonProgressing, time.Minute)
	b.expect(t, []string{"a: a/new@h True", "b: a/new@h True", "c: a/old@o False"},
		[]string{"Progressing: selected clusters 3. configured addons 2/3 progressing..., 0 failed 0 timeout."})

	b.cluster("b", "new", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.expect(t, []string{"a: a/new@h True", "b: a/new@h True", "c: a/new@h True"},
		[]string{"Progressing: selected clusters 3. configured addons 3/3 progressing..., 0 failed 0 timeout."})
}

func TestGraph_NewHashStartsANewRollout(t *testing.T) {
	b := newBench().placement("one", oneByOne(clusterv1alpha1.RolloutConfig{}), "a", "b")
	b.cluster("a", "one", "before", addonv1alpha1.ReasonCompleted, time.Minute)
	b.cluster("b", "one", "before", addonv1alpha1.ReasonCompleted, time.Minute)
	b.expect(t, []string{"a: a/one@h True", "b: a/one@before False"},
		[]string{"Progressing: selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout."})
}

func TestGraph_WaitsForMinSuccessTime(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: time.Hour}}), "a", "b")
	b.cluster("a", "new", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.cluster("b", "old", "o", addonv1alpha1.ReasonCompleted, time.Minute)
	clusters, _, next := b.result()
	if diff := cmp.Diff([]string{"a: a/new@h True", "b: a/old@o False"}, clusters); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want := b.now.Add(59*time.Minute + time.Second); !next.Equal(want) {
		t.Errorf("looks again at %v, want %v", next, want)
	}
}

func TestGraph_WithoutMinSuccessTimeItCompletesAtOnce(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{}), "a")
	b.cluster("a", "new", "h", addonv1alpha1.ReasonCompleted, 0)
	b.expect(t, []string{"a: a/new@h True"}, []string{"Completed: selected clusters 1. configured addons 1/1 completed with no errors, 0 failed 0 timeout."})
}

func TestGraph_ADeadlineIsNotShorterThanItWasSet(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{ProgressDeadline: "5s"}), "a", "b")
	b.cluster("a", "new", "h", addonv1alpha1.ReasonProgressing, 5*time.Second)
	b.cluster("b", "", "", "", 0)
	// The condition may have changed up to a second after the time that the hub stores.
	b.expect(t, []string{"a: a/new@h True", "b: False"}, []string{"Progressing: selected clusters 2. configured addons 1/2 progressing..., 0 failed 0 timeout."})
	b.now = b.now.Add(time.Second)
	b.expect(t, []string{"a: a/new@h True", "b: False"}, []string{"Progressing: selected clusters 2. configured addons 0/2 progressing..., 0 failed 1 timeout."})
}

func TestGraph_StopsAfterAFailure(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{ProgressDeadline: "30s"}), "a", "b")
	b.cluster("a", "new", "h", addonv1alpha1.ReasonFailed, time.Minute)
	b.cluster("b", "old", "o", addonv1alpha1.ReasonCompleted, time.Minute)
	b.expect(t, []string{"a: a/new@h True", "b: a/old@o False"},
		[]string{"Progressing: selected clusters 2. configured addons 0/2 progressing..., 1 failed 1 timeout."})
}

func TestGraph_AClusterThatIsGoneHoldsUpNoRollout(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{}), "a", "b", "c")
	b.absent = sets.New("a")
	b.cluster("b", "", "", "", 0).DeletionTimestamp = &metav1.Time{}
	b.cluster("c", "", "", "", 0)
	b.expect(t, []string{"b:", "c: a/new@h True"}, []string{"Progressing: selected clusters 3. configured addons 1/1 progressing..., 0 failed 0 timeout."})
}

func TestGraph_KeepsConfigurationsWhileDecisionsAreIncomplete(t *testing.T) {
	b := newBench().placement("first", all(), "a").placement("second", all())
	b.decided[1].Incomplete = "it has no status yet"
	b.cluster("a", "second", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	b.cluster("b", "second", "h", addonv1alpha1.ReasonCompleted, time.Minute)
	got, _, _ := b.result()
	if diff := cmp.Diff([]string{"a: a/second@h", "b: a/second@h"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	b.decided[1].Incomplete = ""
	got, _, _ = b.result()
	if diff := cmp.Diff([]string{"a: a/first@h True", "b: a/default@ True"}, got); diff != "" {
		t.Errorf("with all decisions (-want +got)\n%s", diff)
	}
}

func TestGraph_ReportsAnInvalidStrategy(t *testing.T) {
	b := newBench().placement("new", oneByOne(clusterv1alpha1.RolloutConfig{ProgressDeadline: "soon"}), "a")
	b.cluster("a", "old", "o", "", 0)
	b.expect(t, []string{"a: a/old@o False"},
		[]string{`Failed: The rollout strategy is invalid: progressDeadline "soon" is neither None nor a whole number of h, m or s`})
}

func TestDesiredReferences_KeepHashesOfTheSameConfigurations(t *testing.T) {
	b := newBench().placement("one", all())
	b.addOn.Status.DefaultConfigReferences = []addonv1alpha1.DefaultConfigReference{{ConfigGroupResource: deploys, DesiredConfig: hashed("default", "d")}}
	b.addOn.Status.InstallProgressions[0].Conditions = []metav1.Condition{{Type: "Progressing"}}
	status := b.addOn.Status.DeepCopy()
	desiredReferences(status, b.addOn)
	if diff := cmp.Diff(&b.addOn.Status, status); diff != "" {
		t.Errorf("unchanged (-before +after)\n%s", diff)
	}
	other := named("other")
	b.addOn.Spec.SupportedConfigs[0].DefaultConfig = &other
	b.addOn.Spec.InstallStrategy.Placements[0].Configs = nil
	desiredReferences(status, b.addOn)
	if *status.DefaultConfigReferences[0].DesiredConfig != *hashed("other", "") || *status.InstallProgressions[0].ConfigReferences[0].DesiredConfig != *hashed("other", "") {
		t.Errorf("another default: %+v", status)
	}
	if len(status.InstallProgressions[0].Conditions) > 0 {
		t.Error("the condition of another configuration is kept")
	}
	b.addOn.Annotations = map[string]string{addonv1alpha1.LifecycleAnnotation: addonv1alpha1.LifecycleSelf}
	b.addOn.Spec.InstallStrategy.Placements = nil
	if desiredReferences(status, b.addOn); len(status.InstallProgressions) != 1 {
		t.Errorf("the progressions of another manager changed: %+v", status)
	}
	b.addOn.Spec.InstallStrategy.Type = addonv1alpha1.InstallManual
	if desiredReferences(status, b.addOn); len(status.InstallProgressions) != 0 {
		t.Errorf("progressions without Placements: %+v", status)
	}
}

func TestMerged_KeepsWhatIsKnown(t *testing.T) {
	before := []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: deploys, ConfigReferent: named("one"), LastObservedGeneration: 3, DesiredConfig: hashed("one", "1"), LastAppliedConfig: hashed("one", "1"),
	}, {ConfigGroupResource: foos, ConfigReferent: named("gone"), DesiredConfig: hashed("gone", "g")}}
	want := []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: deploys, ConfigReferent: named("one"), LastObservedGeneration: 3, DesiredConfig: hashed("one", "2"), LastAppliedConfig: hashed("one", "1"),
	}}
	if diff := cmp.Diff(want, merged(before, references{deploys: {*hashed("one", "2")}})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
