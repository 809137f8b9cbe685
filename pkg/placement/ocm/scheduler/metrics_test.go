// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	testingclock "k8s.io/utils/clock/testing"

	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
)

// ticking is a clock that advances by a second with each reading.
type ticking struct{ *testingclock.FakePassiveClock }

func (t ticking) Now() time.Time {
	t.SetTime(t.FakePassiveClock.Now().Add(time.Second))
	return t.FakePassiveClock.Now()
}

func (t ticking) Since(since time.Time) time.Duration { return t.Now().Sub(since) }

func TestMetrics_MeasurePluginsAndExpressionsOncePerDecision(t *testing.T) {
	registry := prometheus.NewRegistry()
	measured, err := newMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	r := cacheOf(managed("a", nil), managed("b", nil))
	placement := placed(func(spec *ocmclusterv1beta1.PlacementSpec) {
		spec.Predicates = make([]ocmclusterv1beta1.ClusterPredicate, 1)
		spec.Predicates[0].RequiredClusterSelector.CELSelector.CELExpressions = []string{`managedCluster.metadata.name != "c"`}
		spec.PrioritizerPolicy.Configurations = []ocmclusterv1beta1.PrioritizerConfig{{Weight: 1, ScoreCoordinate: ocmclusterv1beta1.ScoreCoordinate{
			Type: ocmclusterv1beta1.CoordinateAddOn, AddOn: &ocmclusterv1beta1.AddOnScore{ResourceName: "somebodys", ScoreName: "cpu"},
		}}}
	})
	w := mustParse(t, placement)
	w.watch = &stopwatch{clock: ticking{testingclock.NewFakePassiveClock(noon)}, metrics: measured}
	for range 2 {
		decide(placement, w, r.availableTo("team", w), 0, noon, nil)
	}
	got := map[string]uint64{}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.Metric {
			if n := metric.Histogram.GetSampleCount(); n > 0 {
				got[family.GetName()+of(metric.Label)] = n
			}
			if family.GetName() == "scheduling_cel_runtime_duration_seconds" && metric.Histogram.GetSampleSum() != 4 {
				t.Errorf("two decisions about two clusters took %v s in expressions, want a second for each of the four", metric.Histogram.GetSampleSum())
			}
		}
	}
	if diff := cmp.Diff(map[string]uint64{
		"scheduling_plugin_duration_seconds placement_scheduling Predicate filter":       2,
		"scheduling_plugin_duration_seconds placement_scheduling TaintToleration filter": 2,
		"scheduling_plugin_duration_seconds placement_scheduling AddOn prioritizer":      2,
		"scheduling_plugin_duration_seconds placement_scheduling Balance prioritizer":    2,
		"scheduling_plugin_duration_seconds placement_scheduling Steady prioritizer":     2,
		"scheduling_cel_runtime_duration_seconds placement_scheduling":                   2,
	}, got); diff != "" {
		t.Errorf("what is measured (-want +got):\n%s", diff)
	}
}

func of(labels []*dto.LabelPair) (text string) {
	for _, label := range labels {
		text += " " + label.GetValue()
	}
	return text
}
