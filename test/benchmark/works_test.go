// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

const (
	perWork = 100 // objects in a Work that is one of many of the same rollout
	writers = 8   // who write side by side where that is free to choose

	noChange = 10 * time.Second // for how long it is counted what a Work costs to which nothing happens
)

// BenchmarkWorks measures the delivery of objects from Works to a member, with an agent in this
// process between a real hub and a real member.
//
//   - apply: from the first Work that is made until every Work says that it is applied.
//     Baselines are kubectl with the same objects in files, and a client that writes
//     them eight at a time with nothing to think about, which is the limit.
//   - drift: from a change by hand until the object is as it was.
//   - watch: heap of the agent for each 1,000 objects that it has applied, and that it
//     sees beside them.
//   - many: 5,000 Works, what they cost in requests while nothing happens to them; one
//     more beside them, while all is quiet and while an agent that has just started
//     looks at all of them; what that one costs, and what a start does.
func BenchmarkWorks(b *testing.B) {
	bed := newWorksBed(b)
	b.Run("apply", func(b *testing.B) {
		for _, objects := range []int{10, 100, 1000, 5000} {
			b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
				together(b,
					variant{name: "fleetgate", figures: map[string]float64{"objects/op": float64(objects)},
						do: func(ctx context.Context) (time.Duration, error) { return bed.apply(ctx, objects) }},
					variant{name: "kubectl", do: func(ctx context.Context) (time.Duration, error) { return bed.kubectl(ctx, b.TempDir(), objects) }},
					variant{name: "bare", do: func(ctx context.Context) (time.Duration, error) { return bed.bare(ctx, objects) }})
			})
		}
	})
	b.Run("drift", bed.benchmarkDrift)
	b.Run("watch", bed.benchmarkWatch)
	b.Run("many", bed.benchmarkMany)
}

// configMaps returns objects of 300 bytes each.
func configMaps(namespace string, from, to int) []*corev1.ConfigMap {
	var list []*corev1.ConfigMap
	for i := from; i < to; i++ {
		list = append(list, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("object-%d", i)},
			Data:       map[string]string{"value": strings.Repeat("x", 200)},
		})
	}
	return list
}

// worksOf returns Works for the objects of a namespace, some objects in each.
func worksOf(namespace string, objects, each int) ([]*placementv1beta1.Work, error) {
	var works []*placementv1beta1.Work
	for from := 0; from < objects; from += each {
		work, err := workOf(fmt.Sprintf("%s-%d", namespace, from), configMaps(namespace, from, min(from+each, objects)))
		if err != nil {
			return nil, err
		}
		works = append(works, work)
	}
	return works, nil
}

// apply delivers objects in Works of perWork.
func (w *worksBed) apply(ctx context.Context, objects int) (time.Duration, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return 0, err
	}
	works, err := worksOf(namespace, objects, perWork)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := w.deliver(ctx, works); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, w.withdraw(ctx, works)
}

func (w *worksBed) kubectl(ctx context.Context, dir string, objects int) (time.Duration, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return 0, err
	}
	for _, object := range configMaps(namespace, 0, objects) {
		text, err := json.Marshal(object)
		if err != nil {
			return 0, err
		}
		if err := os.WriteFile(filepath.Join(dir, object.Name+".json"), text, 0o600); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	run := exec.CommandContext(ctx, w.kubectlPath, "--kubeconfig="+w.memberKubeconfig, "apply", "--server-side", "-f", dir)
	if out, err := run.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("kubectl apply: %w: %s", err, out[:min(len(out), 500)])
	}
	return time.Since(begin), nil
}

func (w *worksBed) bare(ctx context.Context, objects int) (time.Duration, error) {
	namespace, err := w.namespace(ctx)
	if err != nil {
		return 0, err
	}
	list := configMaps(namespace, 0, objects)
	begin := time.Now()
	err = sideways(list, func(object *corev1.ConfigMap) error { return w.member.Create(ctx, object) })
	return time.Since(begin), err
}

// benchmarkDrift changes one object after another by hand. There are so many that none is reported
// as contested.
func (w *worksBed) benchmarkDrift(b *testing.B) {
	const objects = 1000
	namespace, err := w.namespace(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	works, err := worksOf(namespace, objects, perWork)
	if err != nil {
		b.Fatal(err)
	}
	if err := w.deliver(b.Context(), works); err != nil {
		b.Fatal(err)
	}
	watched, err := w.member.Watch(b.Context(), &corev1.ConfigMapList{}, client.InNamespace(namespace))
	if err != nil {
		b.Fatal(err)
	}
	defer watched.Stop()
	var took []time.Duration
	nth := 0
	for b.Loop() {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("object-%d", nth%objects)}}
		nth++
		begin := time.Now()
		if err := w.member.Patch(b.Context(), object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"by hand"}}`))); err != nil {
			b.Fatal(err)
		}
		if err := awaitCorrection(watched, object.Name); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	if err := w.withdraw(b.Context(), works); err != nil {
		b.Fatal(err)
	}
}

func awaitCorrection(watched watch.Interface, name string) error {
	changed := false
	for event := range watched.ResultChan() {
		object, ok := event.Object.(*corev1.ConfigMap)
		if !ok || object.Name != name {
			continue
		}
		if object.Data["value"] == "by hand" {
			changed = true
		} else if changed {
			return nil
		}
	}
	return errors.New("the watch ended before the drift was reverted")
}

// benchmarkWatch measures the agent's memory for objects.
func (w *worksBed) benchmarkWatch(b *testing.B) {
	const objects = 5000
	ctx := b.Context()
	for b.Loop() {
		namespace, err := w.namespace(ctx)
		if err != nil {
			b.Fatal(err)
		}
		one, err := workOf(namespace+"-one", configMaps(namespace, objects, objects+1))
		if err != nil {
			b.Fatal(err)
		}
		if err := w.deliver(ctx, []*placementv1beta1.Work{one}); err != nil { // ConfigMaps are watched now
			b.Fatal(err)
		}
		before := heap()
		foreign := configMaps(namespace, objects+1, 2*objects+1)
		if err := sideways(foreign, func(object *corev1.ConfigMap) error { return w.member.Create(ctx, object) }); err != nil {
			b.Fatal(err)
		}
		foreign = nil
		withForeign := heap()
		works, err := worksOf(namespace, objects, perWork)
		if err != nil {
			b.Fatal(err)
		}
		if err := w.deliver(ctx, works); err != nil {
			b.Fatal(err)
		}
		for _, work := range works {
			work.Spec = placementv1beta1.WorkSpec{}
		}
		applied := heap()
		b.ReportMetric(float64(withForeign-before)/1024/(objects/1000), "KiB/1000-foreign")
		b.ReportMetric(float64(applied-withForeign)/1024/(objects/1000), "KiB/1000-applied")
		if err := w.withdraw(ctx, append(works, one)); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// benchmarkMany measures 5,000 Works on one member.
func (w *worksBed) benchmarkMany(b *testing.B) {
	const many = 5000
	ctx := b.Context()
	namespace, err := w.namespace(ctx)
	if err != nil {
		b.Fatal(err)
	}
	works, err := worksOf(namespace, many, 1)
	if err != nil {
		b.Fatal(err)
	}
	begin := time.Now()
	if err := w.deliver(ctx, works); err != nil {
		b.Fatal(err)
	}
	rate := many / time.Since(begin).Seconds()
	settled := settle(w.asked.total)
	time.Sleep(noChange)
	unchanged := float64(w.asked.total()-settled) / many
	nth := many
	newcomer := func() time.Duration {
		nth++
		work, err := workOf(fmt.Sprintf("%s-new-%d", namespace, nth), configMaps(namespace, nth, nth+1))
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		if err := w.deliver(ctx, []*placementv1beta1.Work{work}); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin)
	}
	for b.Loop() {
		before := w.asked.total()
		_, writesBefore := w.asked.counts()
		quiet := newcomer()
		after := settle(w.asked.total)
		reads, writes := w.asked.counts()
		writesOfOne := writes - writesBefore
		w.restart(b)
		for w.asked.total() == after { // until it looks at the first of them
			time.Sleep(time.Millisecond)
		}
		starting := newcomer()
		settle(w.asked.total)
		readsAfter, writesAfter := w.asked.counts()
		b.ReportMetric(float64(quiet.Milliseconds()), "quiet-newcomer-ms")
		b.ReportMetric(float64(starting.Milliseconds()), "start-newcomer-ms")
		b.ReportMetric(float64(after-before), "requests/newcomer")
		b.ReportMetric(float64(readsAfter-reads)/many, "start-reads/work")
		b.ReportMetric(float64(writesAfter-writes-writesOfOne), "start-writes")
	}
	b.ReportMetric(rate, "works/s")
	b.ReportMetric(unchanged, "requests/unchanged")
}

// settle waits until there are no more requests.
func settle(count func() int) int {
	before := -1
	for now := count(); now != before; now = count() {
		before = now
		time.Sleep(3 * time.Second)
	}
	return before
}

// sideways calls a function for each of many, in parallel up to writers.
func sideways[T any](all []T, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(writers)
	for _, one := range all {
		group.Go(func() error { return do(one) })
	}
	return group.Wait()
}
