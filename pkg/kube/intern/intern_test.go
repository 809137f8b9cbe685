// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intern

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// work is one as read from a hub, with its own strings.
func work(t testing.TB, nth int) *placementv1beta1.Work {
	t.Helper()
	condition := `{"lastTransitionTime":"2026-01-02T03:04:05Z","message":"All works are applied.","observedGeneration":1,"reason":"Applied","status":"True","type":"Applied"}`
	var manifests []string
	for ordinal := range 5 {
		manifests = append(manifests, fmt.Sprintf(`{"conditions":[%s,%s],"identifier":{"kind":"ConfigMap","name":"settings-%d","namespace":"shop","ordinal":%d,"version":"v1"}}`,
			condition, condition, ordinal, ordinal))
	}
	text := fmt.Sprintf(`{"metadata":{"name":"shop-work","namespace":"fleet-member-%d","uid":"uid-%d","labels":{"parent":"shop"},"finalizers":["kubernetes-fleet.io/work-cleanup"],
		"managedFields":[{"manager":"gateway","operation":"Update"}],
		"ownerReferences":[{"apiVersion":"placement.kubernetes-fleet.io/v1","kind":"ClusterResourceBinding","name":"shop-%d","uid":"uid"}]},
		"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap"}]}},
		"status":{"conditions":[%s,%s,%s],"manifestConditions":[%s]}}`,
		nth, nth, nth, condition, condition, condition, strings.Join(manifests, ","))
	w := &placementv1beta1.Work{}
	if err := json.Unmarshal([]byte(text), w); err != nil {
		t.Fatal(err)
	}
	return w
}

func member(t testing.TB) *clusterv1beta1.MemberCluster {
	t.Helper()
	m := &clusterv1beta1.MemberCluster{}
	text := `{"metadata":{"name":"member-1","annotations":{"key":"` + strings.Repeat("k", 2*longest) + `"},"labels":{"region":"west","empty":""}},
		"spec":{"taints":[{"key":"region","value":"west","effect":"NoSchedule"}]},
		"status":{"resourceUsage":{"capacity":{"cpu":"8","memory":"32Gi"}},"properties":{"region":{"value":"west","observationTime":"2026-01-02T03:04:05Z"}}}}`
	if err := json.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestTransform_KeepsContentExceptManagedFields(t *testing.T) {
	table := &Table{}
	for _, object := range []client.Object{
		work(t, 1), member(t), &corev1.Pod{},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{}, BinaryData: map[string][]byte{"b": []byte("b")}},
		&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{"a": "b"}}},
		&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "u"}}},
	} {
		want := object.DeepCopyObject().(client.Object)
		want.SetManagedFields(nil)
		for range 2 { // A second transform changes nothing.
			if got, err := table.Transform(object); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%T: %v\ngot  %+v\nwant %+v", object, err, got, want)
			}
		}
	}
}

func TestTransform_KeepsUnknownTypes(t *testing.T) {
	for _, object := range []any{toolscache.DeletedFinalStateUnknown{Key: "k"}, "text", nil} {
		if got, err := (&Table{}).Transform(object); err != nil || !reflect.DeepEqual(got, object) {
			t.Errorf("%#v: got %#v, %v", object, got, err)
		}
	}
}

func TestTransform_SharesEqualStrings(t *testing.T) {
	table := &Table{}
	first, second := work(t, 1), work(t, 2)
	for _, w := range []*placementv1beta1.Work{first, second} {
		if _, err := table.Transform(w); err != nil {
			t.Fatal(err)
		}
	}
	for what, of := range map[string]func(*placementv1beta1.Work) string{
		"a condition's message": func(w *placementv1beta1.Work) string { return w.Status.Conditions[0].Message },
		"a manifest's reason":   func(w *placementv1beta1.Work) string { return w.Status.ManifestConditions[4].Conditions[1].Reason },
		"a label's key":         func(w *placementv1beta1.Work) string { return slices.Collect(maps.Keys(w.Labels))[0] },
		"a label's value":       func(w *placementv1beta1.Work) string { return w.Labels["parent"] },
		"an owner's kind":       func(w *placementv1beta1.Work) string { return w.OwnerReferences[0].Kind },
	} {
		if a, b := of(first), of(second); a != b || unsafe.StringData(a) != unsafe.StringData(b) {
			t.Errorf("%s: %q and %q are two", what, a, b)
		}
	}
}

func TestTransform_CutsSlicesToLength(t *testing.T) {
	w := work(t, 1)
	if cap(w.Status.Conditions) == len(w.Status.Conditions) {
		t.Fatal("the decoder left no room: this test shows nothing")
	}
	if _, err := (&Table{}).Transform(w); err != nil {
		t.Fatal(err)
	}
	if cap(w.Status.Conditions) != len(w.Status.Conditions) || cap(w.Status.ManifestConditions) != len(w.Status.ManifestConditions) {
		t.Errorf("room for %d and %d of %d and %d", cap(w.Status.Conditions), cap(w.Status.ManifestConditions), len(w.Status.Conditions), len(w.Status.ManifestConditions))
	}
}

func TestTable_KeepsRecentStrings(t *testing.T) {
	table := &Table{}
	named := func(name string) *corev1.ConfigMap {
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: strings.Clone(name)}}
		if _, err := table.Transform(c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	often := named("often")
	for nth := range 5 * generation {
		named(fmt.Sprintf("object-%d", nth))
		if nth%1000 == 0 && unsafe.StringData(named("often").Name) != unsafe.StringData(often.Name) {
			t.Fatalf("forgotten after %d others, though it came again and again", nth)
		}
	}
	if kept := len(table.recent) + len(table.before); kept > 2*generation {
		t.Errorf("%d strings are remembered", kept)
	}
}

func TestAfter_PassesResultOn(t *testing.T) {
	after := (&Table{}).After(func(object any) (any, error) {
		object.(*placementv1beta1.Work).Spec.Workload.Manifests = nil
		return object, nil
	})
	got, err := after(work(t, 1))
	if w, ok := got.(*placementv1beta1.Work); err != nil || !ok || w.Spec.Workload.Manifests != nil || w.ManagedFields != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	refused := errors.New("refused")
	if _, err := (&Table{}).After(func(any) (any, error) { return nil, refused })(nil); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}

func TestTable_IsSafeForSeveralCaches(t *testing.T) {
	table := &Table{}
	var caches sync.WaitGroup
	for range 4 {
		caches.Go(func() {
			for nth := range 100 {
				if _, err := table.Transform(work(t, nth)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	caches.Wait()
}

// BenchmarkTransform measures the cost of reducing a Work, and the memory of 1,000 of them before
// and after.
func BenchmarkTransform(b *testing.B) {
	const many = 1000
	table := &Table{}
	hold := func(transform func(any) (any, error)) float64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		works := make([]any, many)
		for nth := range works {
			works[nth], _ = transform(work(b, nth))
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(works)
		return float64(after.HeapAlloc-before.HeapAlloc) / many
	}
	read := hold(func(object any) (any, error) { return object, nil })
	smaller := hold(table.Transform)
	w := work(b, 1)
	for b.Loop() {
		_, _ = table.Transform(w)
	}
	b.ReportMetric(read, "B/work-read")
	b.ReportMetric(smaller, "B/work")
}
