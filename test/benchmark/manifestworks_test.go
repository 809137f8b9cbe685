// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// BenchmarkManifestworks measures the delivery of ManifestWorks and their status, with an agent in
// this process between a real hub and a real cluster.
//
//   - one: a ManifestWork of ten ConfigMaps, from its creation until its status says Applied
//     and Available, one after another; how often either side is written, without the
//     objects. Bare is a client that makes the same writes with nothing to think about.
//   - apply: 5,000 ConfigMaps in 50 ManifestWorks, beside their bare creations.
//   - drift: from a change by hand until it is undone.
//   - feedback: from a change on the cluster until the hub has it as a value.
//   - unchanged: requests for 1,000 ManifestWorks in ten seconds, and the agent's heap for
//     each: a Deployment with ten values of feedback.
//   - replicaset: one ManifestWorkReplicaSet, until 1,000 clusters have its ManifestWork,
//     beside a client that creates them.
func BenchmarkManifestworks(b *testing.B) {
	bed := newManifestBed(b)
	b.Run("one", bed.benchmarkOne)
	b.Run("apply", func(b *testing.B) {
		const objects = 5000
		together(b,
			variant{name: "fleetgate", figures: map[string]float64{"objects/op": objects},
				do: func(ctx context.Context) (time.Duration, error) { return bed.apply(ctx, objects) }},
			variant{name: "bare", do: func(ctx context.Context) (time.Duration, error) {
				return (&worksBed{member: bed.member}).bare(ctx, objects)
			}})
	})
	b.Run("drift", bed.benchmarkDrift)
	b.Run("feedback", bed.benchmarkFeedback)
	b.Run("unchanged", bed.benchmarkUnchanged)
	b.Run("replicaset", bed.benchmarkReplicaSet)
}

// apply delivers ConfigMaps in ManifestWorks of perWork.
func (m *manifestBed) apply(ctx context.Context, objects int) (time.Duration, error) {
	namespace, err := m.namespace(ctx)
	if err != nil {
		return 0, err
	}
	works, err := manifestWorksOf(namespace, objects, perWork)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := m.deliver(ctx, works); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, m.withdraw(ctx, works)
}

// benchmarkOne makes a hundred, one after another.
func (m *manifestBed) benchmarkOne(b *testing.B) {
	const count, objects = 100, 10
	ctx := b.Context()
	for b.Loop() {
		namespace, err := m.namespace(ctx)
		if err != nil {
			b.Fatal(err)
		}
		works, err := manifestWorksOf(namespace, count*objects, objects)
		if err != nil {
			b.Fatal(err)
		}
		var took, bare []time.Duration
		settle(func() int { return m.atHub.total() + m.atMember.total() })
		_, hubBefore := m.atHub.counts()
		_, memberBefore := m.atMember.counts()
		for _, work := range works {
			begin := time.Now()
			if err := m.deliver(ctx, []*workv1.ManifestWork{work}); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
		settle(func() int { return m.atHub.total() + m.atMember.total() })
		_, hubAfter := m.atHub.counts()
		_, memberAfter := m.atMember.counts()
		for nth := range count {
			begin := time.Now()
			if err := m.bareOne(ctx, fmt.Sprintf("bare-%s-%d", namespace, nth), objects); err != nil {
				b.Fatal(err)
			}
			bare = append(bare, time.Since(begin))
		}
		reportPercentiles(b, "", took)
		reportPercentiles(b, "bare-", bare)
		b.ReportMetric(float64(hubAfter-hubBefore)/count, "hub-writes/work")
		b.ReportMetric(float64(memberAfter-memberBefore)/count-objects, "member-writes/work")
		if err := m.withdraw(ctx, works); err != nil {
			b.Fatal(err)
		}
	}
}

// bareOne makes the writes that one ManifestWork takes: on the hub it, its finalizer and its
// status, on the cluster its record, the ledger twice, and the objects. ConfigMaps stand
// for all of them, because the agent reacts to the other kinds.
func (m *manifestBed) bareOne(ctx context.Context, name string, objects int) error {
	namespace, err := m.namespace(ctx)
	if err != nil {
		return err
	}
	atHub := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: manifestCluster, Name: name}, Data: map[string]string{"spec": strings.Repeat("x", 300*objects)}}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "record"}}
	steps := []func() error{
		func() error { return m.hub.Create(ctx, atHub) },
		func() error { return annotate(ctx, m.hub, atHub, "finalizer", "1") },
		func() error { return m.member.Create(ctx, record) },
		func() error { return annotate(ctx, m.member, record, "before", strings.Repeat("x", 100*objects)) },
		func() error {
			return sideways(configMaps(namespace, 0, objects), func(object *corev1.ConfigMap) error { return m.member.Create(ctx, object) })
		},
		func() error { return annotate(ctx, m.member, record, "after", strings.Repeat("x", 150*objects)) },
		func() error { return annotate(ctx, m.hub, atHub, "status", strings.Repeat("x", 800*objects)) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func annotate(ctx context.Context, c client.Client, object *corev1.ConfigMap, key, value string) error {
	before := object.DeepCopy()
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations["fleetgate.io/"+key] = value
	return c.Patch(ctx, object, client.MergeFrom(before))
}

// reportPercentiles prints the median and the 99th percentile.
func reportPercentiles(b *testing.B, prefix string, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, prefix+"p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, prefix+"p99-ms")
}

// benchmarkDrift changes one object after another by hand. There are so many that none is reported
// as contested.
func (m *manifestBed) benchmarkDrift(b *testing.B) {
	const objects = 1000
	ctx := b.Context()
	namespace, err := m.namespace(ctx)
	if err != nil {
		b.Fatal(err)
	}
	works, err := manifestWorksOf(namespace, objects, perWork)
	if err != nil {
		b.Fatal(err)
	}
	if err := m.deliver(ctx, works); err != nil {
		b.Fatal(err)
	}
	watched, err := m.member.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	if err != nil {
		b.Fatal(err)
	}
	defer watched.Stop()
	var took []time.Duration
	for b.Loop() {
		for nth := range objects / 4 {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("object-%d", nth*4)}}
			begin := time.Now()
			if err := m.member.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{"data":{"value":"by hand"}}`))); err != nil {
				b.Fatal(err)
			}
			if err := awaitCorrection(watched, object.Name); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
	}
	reportPercentiles(b, "", took)
	if err := m.withdraw(ctx, works); err != nil {
		b.Fatal(err)
	}
}

// benchmarkFeedback changes one object after another that ManifestWorks only read, none more often
// than an agent reads.
func (m *manifestBed) benchmarkFeedback(b *testing.B) {
	const objects = 200
	ctx := b.Context()
	namespace, err := m.namespace(ctx)
	if err != nil {
		b.Fatal(err)
	}
	if err := sideways(configMaps(namespace, 0, objects), func(object *corev1.ConfigMap) error { return m.member.Create(ctx, object) }); err != nil {
		b.Fatal(err)
	}
	works, err := manifestWorksOf(namespace, objects, 1)
	if err != nil {
		b.Fatal(err)
	}
	for _, work := range works {
		work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: namespace, Name: "*"},
			UpdateStrategy:     &workv1.UpdateStrategy{Type: workv1.UpdateStrategyReadOnly},
			FeedbackRules:      []workv1.FeedbackRule{{Type: "JSONPaths", JSONPaths: []workv1.JSONPath{{Name: "value", Path: ".data.value"}}}},
		}}
	}
	if err := m.deliver(ctx, works); err != nil {
		b.Fatal(err)
	}
	watched, err := m.hub.Watch(ctx, &workv1.ManifestWorkList{}, client.InNamespace(manifestCluster))
	if err != nil {
		b.Fatal(err)
	}
	defer watched.Stop()
	var took []time.Duration
	for b.Loop() {
		for nth := range objects {
			value := fmt.Sprintf("round-%d-%d", b.N, len(took))
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("object-%d", nth)}}
			begin := time.Now()
			if err := m.member.Patch(ctx, object, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"value":%q}}`, value))); err != nil {
				b.Fatal(err)
			}
			if err := awaitValue(watched, value); err != nil {
				b.Fatal(err)
			}
			took = append(took, time.Since(begin))
		}
	}
	reportPercentiles(b, "", took)
	if err := m.withdraw(ctx, works); err != nil {
		b.Fatal(err)
	}
}

// awaitValue waits until a ManifestWork reports a value.
func awaitValue(watched watch.Interface, value string) error {
	for event := range watched.ResultChan() {
		work, ok := event.Object.(*workv1.ManifestWork)
		if !ok {
			continue
		}
		for _, of := range work.Status.ResourceStatus.Manifests {
			for _, v := range of.StatusFeedback.Values {
				if v.Value.String != nil && *v.Value.String == value {
					return nil
				}
			}
		}
	}
	return errors.New("the watch ended before the value was reported")
}

// benchmarkUnchanged measures 1,000 unchanged ManifestWorks of a Deployment.
func (m *manifestBed) benchmarkUnchanged(b *testing.B) {
	const count = 1000
	ctx := b.Context()
	for b.Loop() {
		namespace, err := m.namespace(ctx)
		if err != nil {
			b.Fatal(err)
		}
		before := heap()
		works := make([]*workv1.ManifestWork, 0, count)
		for nth := range count {
			work, err := manifestWorkOf(fmt.Sprintf("%s-%d", namespace, nth), []*appsv1.Deployment{deployment(namespace, nth)})
			if err != nil {
				b.Fatal(err)
			}
			work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{reported(namespace)}
			works = append(works, work)
		}
		if err := m.deliver(ctx, works); err != nil {
			b.Fatal(err)
		}
		for _, work := range works {
			work.Spec = workv1.ManifestWorkSpec{}
		}
		all := func() int { return m.atHub.total() + m.atMember.total() }
		settled := settle(all)
		b.ReportMetric(float64(heap()-before)/1024/count, "KiB/work")
		time.Sleep(noChange)
		b.ReportMetric(float64(all()-settled), "requests/unchanged")
		if err := m.withdraw(ctx, works); err != nil {
			b.Fatal(err)
		}
	}
}

// deployment has no replicas: this cluster has no nodes.
func deployment(namespace string, nth int) *appsv1.Deployment {
	labels := map[string]string{"app": fmt.Sprintf("app-%d", nth)}
	none := int32(0)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: labels["app"], Labels: maps.Clone(labels)},
		Spec: appsv1.DeploymentSpec{Replicas: &none, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:1"}}}}},
	}
}

// reported adds feedback rules for ten values of a Deployment.
func reported(namespace string) workv1.ManifestConfigOption {
	rule := workv1.FeedbackRule{Type: "JSONPaths"}
	for nth, path := range []string{
		".metadata.name", ".metadata.namespace", ".metadata.generation", ".spec.replicas", ".spec.progressDeadlineSeconds",
		".spec.revisionHistoryLimit", ".spec.strategy.type", ".spec.template.spec.restartPolicy", ".spec.template.spec.dnsPolicy", ".spec.template.spec.schedulerName",
	} {
		rule.JSONPaths = append(rule.JSONPaths, workv1.JSONPath{Name: fmt.Sprintf("v%d", nth), Path: path})
	}
	return workv1.ManifestConfigOption{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: namespace, Name: "*"},
		FeedbackRules:      []workv1.FeedbackRule{rule},
	}
}
