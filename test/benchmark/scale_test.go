// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// scaleVariable overrides the measured size, as <members>x<members of a placement>x<placements>x<placements>.
const scaleVariable = "FLEETGATE_SCALE"

// published are KubeFleet's results: 90th percentiles in seconds, with 1,000 members and placements
// on 100 of them. The last two are divided by what they are for.
const (
	publishedPlacement       = 20.0
	publishedPlacementBeside = 21.0
	publishedRun             = 96.0
	publishedPerRun          = 135.0 / 100
	publishedPerWork         = 675_000.0 / 100_000
)

// scaleSamples is how often what one user does is measured, and scaleRestarts how often a restart is.
const scaleSamples, scaleRestarts = 5, 3

// scaleSize is a number of members, of members of each placement, and two numbers of placements.
type scaleSize struct{ members, chosen, few, many int }

func scaleSizeOf(b *testing.B) scaleSize {
	b.Helper()
	size := scaleSize{members: 200, chosen: 100, few: 10, many: 40}
	text := os.Getenv(scaleVariable)
	if text == "" {
		return size
	}
	_, err := fmt.Sscanf(text, "%dx%dx%dx%d", &size.members, &size.chosen, &size.few, &size.many)
	if err != nil || size.chosen < stages || size.members < size.chosen || size.few < scaleSamples || size.many < size.few+scaleSamples {
		b.Fatalf("%s is %q and not such as 200x100x10x40: %v", scaleVariable, text, err)
	}
	return size
}

// BenchmarkScale measures KubeFleet's published scenario with fewer members and placements, beside
// the published results. Members are simulated as in BenchmarkPlacement. Everything runs once on one
// fleet, whatever -benchtime says. Figures, of which times are 90th percentiles:
//
//   - place/beside-N: from a placement on 100 members until it is Available, beside N others.
//   - run/one: from an update run of three stages, with half of their members at a time, until it
//     has succeeded.
//   - run/N: from N such runs of as many placements until each has succeeded.
//   - restart/N: from the start of a new gateway until it has reconciled N Works and is idle.
//   - slope: what each further placement, run and 1,000 Works add, between the two sizes, for
//     estimates of others.
func BenchmarkScale(b *testing.B) {
	size := scaleSizeOf(b)
	s := &scaleBed{placementBed: newPlacementBed(b, 0, size.members)}
	s.chosen = size.chosen
	s.settle(b) // A gateway installs its objects after the start.
	s.join(b)
	s.stages(b)
	s.settle(b)

	s.measurePlacement(b)
	var few scaleResult
	for _, placements := range []int{size.few, size.many} {
		s.place(b, placements-s.placements)
		result := scaleResult{placements: placements, placement: s.measurePlacement(b)}
		s.external(b)
		if few.placements == 0 {
			s.measureRun(b)
		}
		result.runs, result.works = s.measureRuns(b), s.works()
		result.restart = s.measureRestarts(b)
		s.report(result, few)
		few = result
	}
	s.print(b)
}

// scaleBed is a placementBed that grows.
type scaleBed struct{ *placementBed }

// scaleResult are the results with a number of placements.
type scaleResult struct {
	placements, works        int
	placement, runs, restart time.Duration
}

// stages creates the update strategy.
func (s *scaleBed) stages(b *testing.B) {
	half := intstr.FromString("50%")
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "thirds"}}
	for nth := range stages {
		strategy.Spec.Stages = append(strategy.Spec.Stages, placementv1beta1.StageConfig{
			Name: fmt.Sprintf("third%d", nth), MaxConcurrency: &half,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{stageLabel: fmt.Sprint(nth)}}})
	}
	if err := s.hub.Create(b.Context(), strategy); err != nil {
		b.Fatal(err)
	}
}

// place creates n more placements with their resources, and waits until they are Available. It
// returns the times until they were.
func (s *scaleBed) place(b *testing.B, n int) []time.Duration {
	b.Helper()
	begin := s.placements
	s.placements += n
	added := s.placementNames()[begin:]
	s.prepare(b, added)
	s.settle(b)
	began := time.Now()
	s.each(b, added, func(ctx context.Context, name string) error {
		crp := placementOf(name)
		var nth int
		if _, err := fmt.Sscanf(name, measuredPrefix+"%d", &nth); err != nil {
			return err
		}
		set := map[string]string{setLabel: fmt.Sprint(nth % (s.members / s.chosen))}
		crp.Spec.Policy = &placementv1beta1.PlacementPolicy{
			PlacementType: placementv1beta1.PickAll,
			Affinity: &placementv1beta1.Affinity{ClusterAffinity: &placementv1beta1.ClusterAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &placementv1beta1.ClusterSelector{
					ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: &metav1.LabelSelector{MatchLabels: set}}}}}},
		}
		return s.hub.Create(ctx, crp)
	})
	creating := time.Since(began)
	took := s.awaitAvailable(b, added)
	for i := range took {
		took[i] += creating
	}
	return took
}

// measurePlacement measures single placements beside the existing ones.
func (s *scaleBed) measurePlacement(b *testing.B) time.Duration {
	beside, published := s.placements, publishedPlacement
	if beside > 0 {
		published = publishedPlacementBeside
	}
	name := fmt.Sprintf("place/beside-%d", beside)
	var took []time.Duration
	placing := s.begin(b, "place")
	for range scaleSamples {
		took = append(took, s.place(b, 1)...)
	}
	placing.end(b)
	return s.figure90(name, took, map[string]float64{"published-p90-s": published})
}

// figure90 adds a figure of a 90th percentile beside the published one.
func (s *scaleBed) figure90(name string, took []time.Duration, more map[string]float64) time.Duration {
	most := percentile90(took)
	more["p50-s"], more["p90-s"] = took[len(took)/2].Seconds(), most.Seconds()
	s.figures = append(s.figures, figure{name, most, more})
	return most
}

// percentile90 sorts, and returns the least that nine of ten do not exceed.
func percentile90(took []time.Duration) time.Duration {
	slices.Sort(took)
	const of, most = 10, 9
	return took[(len(took)*most+of-1)/of-1]
}

// external leaves the rollout of all placements to update runs.
func (s *scaleBed) external(b *testing.B) {
	patch := []byte(`{"spec":{"strategy":{"type":"External","rollingUpdate":null}}}`)
	s.each(b, s.placementNames(), func(ctx context.Context, name string) error {
		crp := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return s.hub.Patch(ctx, crp, client.RawPatch(types.MergePatchType, patch))
	})
	s.settle(b)
}

// run changes a resource of the first n placements, and rolls it out with one update run each. It
// returns the times until they have succeeded.
func (s *scaleBed) run(b *testing.B, n int) []time.Duration {
	b.Helper()
	s.change(b, n)
	s.settle(b)
	var runs []string
	for _, placement := range s.placementNames()[:n] {
		runs = append(runs, fmt.Sprintf("%s.%d", placement, s.snapshots[placement]))
	}
	began := time.Now()
	s.each(b, runs, func(ctx context.Context, name string) error {
		run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: name}}
		run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: strings.SplitN(name, ".", 2)[0], StagedRolloutStrategyName: "thirds", State: placementv1beta1.UpdateRunRun}
		return s.hub.Create(ctx, run)
	})
	creating := time.Since(began)
	took := s.awaitEach(b, "ClusterStagedUpdateRun", runs, func(ctx context.Context, name string) (bool, error) {
		run := &placementv1beta1.ClusterStagedUpdateRun{}
		if err := s.hub.Get(ctx, client.ObjectKey{Name: name}, run); err != nil {
			return false, err
		}
		if c := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionUpdateRunSucceeded); c != nil && c.Status == metav1.ConditionFalse {
			return false, fmt.Errorf("update run %s failed: %s", name, c.Message)
		}
		return meta.IsStatusConditionTrue(run.Status.Conditions, placementv1beta1.ConditionUpdateRunSucceeded), nil
	})
	s.awaitChange(b, n) // Fails if the runs had the previous resources.
	for i := range took {
		took[i] += creating
	}
	return took
}

// measureRun measures single update runs.
func (s *scaleBed) measureRun(b *testing.B) {
	var took []time.Duration
	running := s.begin(b, "run")
	for range scaleSamples {
		took = append(took, s.run(b, 1)...)
	}
	writes := float64(total(running.end(b)))
	s.figure90("run/one", took, map[string]float64{"published-p90-s": publishedRun, "writes/member": writes / float64(scaleSamples*s.chosen)})
}

// measureRuns measures one update run of each placement at once.
func (s *scaleBed) measureRuns(b *testing.B) time.Duration {
	running, cpu := s.begin(b, "runs"), cpuOf(b, s.fleet.Gateway.PID())
	took := s.run(b, s.placements)
	s.settle(b)
	writes := float64(total(running.end(b)))
	return s.figure90(fmt.Sprintf("run/%d", s.placements), took, map[string]float64{
		"s/run": percentile90(took).Seconds() / float64(s.placements), "published-s/run": publishedPerRun,
		"gateway-cpu-s": (cpuOf(b, s.fleet.Gateway.PID()) - cpu).Seconds(),
		"writes/member": writes / float64(s.works()),
	})
}

// measureRestarts measures restarts of the gateway without changes.
func (s *scaleBed) measureRestarts(b *testing.B) time.Duration {
	var took []time.Duration
	restarting := s.begin(b, "restart")
	for range scaleRestarts {
		took = append(took, s.restart(b))
	}
	writes := slices.DeleteFunc(restarting.end(b), written.isReport)
	perWork := percentile90(took).Seconds() * 1000 / float64(s.works())
	return s.figure90(fmt.Sprintf("restart/%d", s.works()), took, map[string]float64{
		"ms/Work": perWork, "published-ms/Work": publishedPerWork,
		"gateway-MiB": mebibytes(residentOf(b, s.fleet.Gateway.PID())), "writes": float64(total(writes)),
	})
}

func (s *scaleBed) restart(b *testing.B) time.Duration {
	if err := s.fleet.Gateway.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	if err := s.fleet.Gateway.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	s.awaitLooked(b)
	return time.Since(began)
}

// report adds what each placement, run and Work added between two sizes.
func (s *scaleBed) report(now, before scaleResult) {
	if before.placements == 0 {
		return
	}
	placements := float64(now.placements - before.placements)
	s.figures = append(s.figures, figure{"slope", now.restart, map[string]float64{
		"ms/placement-beside": (now.placement - before.placement).Seconds() * 1000 / placements,
		"s/further-run":       (now.runs - before.runs).Seconds() / placements,
		"s/1000-Works":        (now.restart - before.restart).Seconds() * 1000 / float64(now.works-before.works),
	}})
}
