// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// configMaps selects ConfigMaps by name.
type configMaps struct {
	nothing
	names []string
}

func (c *configMaps) Select(context.Context, types.NamespacedName, []placementv1beta1.ResourceSelectorTerm, *selection.Bound) (selection.Selected, error) {
	var selected selection.Selected
	for _, name := range c.names {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		object.SetNamespace("shop")
		object.SetName(name)
		selected.Objects = append(selected.Objects, object)
	}
	return selected, nil
}

// selecting is a placement of ten ConfigMaps, with its snapshot.
func selecting(t *testing.T) (r *Reconciler, hub client.Client, placement *placementv1beta1.ClusterResourcePlacement, selected *configMaps) {
	t.Helper()
	placement = &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 1}}
	placement.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}
	hub = hubWith(t, placement)
	if err := hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	selected = &configMaps{}
	for i := range 10 {
		selected.names = append(selected.names, fmt.Sprintf("c-%d", i))
		if err := hub.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: selected.names[i]}}); err != nil {
			t.Fatal(err)
		}
	}
	r = &Reconciler{Client: hub, Live: hub, Selector: selected, Users: nothing{}, Recorder: events.NewFakeRecorder(10), Snapshots: NewContents(hub, hub, Envelopes{}), Clock: testingclock.NewFakePassiveClock(time.Now())}
	if _, err := r.Take(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	return r, hub, placement, selected
}

func TestSuspendRemoval(t *testing.T) {
	remove := func(t *testing.T, hub client.Client, objects ...client.Object) {
		for _, object := range objects {
			if err := hub.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, tc := range map[string]struct {
		selected  int
		change    func(*testing.T, client.Client, *placementv1beta1.ClusterResourcePlacement)
		suspended bool
	}{
		"incomplete list": {selected: 3, suspended: true},
		"empty selection": {suspended: true},
		"fewer than five": {selected: 6},
		"selectors changed": {selected: 3, change: func(_ *testing.T, _ client.Client, p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.ResourceSelectors[0].SelectionScope = placementv1beta1.NamespaceOnly
		}},
		"selectors changed and select nothing": {suspended: true, change: func(_ *testing.T, _ client.Client, p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.ResourceSelectors[0].Name = "shpo"
		}},
		"objects deleted on the hub": {selected: 3, change: func(t *testing.T, hub client.Client, _ *placementv1beta1.ClusterResourcePlacement) {
			for i := 3; i < 10; i++ {
				remove(t, hub, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("c-%d", i)}})
			}
		}},
		"namespace deleted on the hub": {change: func(t *testing.T, hub client.Client, _ *placementv1beta1.ClusterResourcePlacement) {
			remove(t, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		}},
		"some deleted on the hub, others missing": {selected: 3, suspended: true, change: func(t *testing.T, hub client.Client, _ *placementv1beta1.ClusterResourcePlacement) {
			remove(t, hub, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c-9"}})
		}},
		"other removal confirmed": {selected: 3, suspended: true, change: func(_ *testing.T, _ client.Client, p *placementv1beta1.ClusterResourcePlacement) {
			p.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: placementv1beta1.RemovalToken([]string{"ConfigMap shop/other"})}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, hub, placement, selected := selecting(t)
			selected.names = selected.names[:tc.selected]
			if tc.change != nil {
				tc.change(t, hub, placement)
			}
			if _, err := r.Take(t.Context(), placement); err != nil {
				t.Fatal(err)
			}
			var list placementv1beta1.ClusterResourceSnapshotList
			if err := hub.List(t.Context(), &list); err != nil {
				t.Fatal(err)
			}
			c := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended)
			if (c != nil) != tc.suspended || (len(list.Items) == 1) != tc.suspended {
				t.Errorf("condition %v, %d snapshots; want suspended = %v", c, len(list.Items), tc.suspended)
			}
		})
	}
}

func TestSuspendRemoval_ContinuesWhenConfirmedOrComplete(t *testing.T) {
	r, hub, placement, selected := selecting(t)
	all := selected.names
	take := func(names []string, suspended bool, snapshots int) {
		t.Helper()
		selected.names = names
		if _, err := r.Take(t.Context(), placement); err != nil {
			t.Fatal(err)
		}
		var list placementv1beta1.ClusterResourceSnapshotList
		if err := hub.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if got := meta.IsStatusConditionTrue(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended); got != suspended || len(list.Items) != snapshots {
			t.Fatalf("suspended %v with %d snapshots, want %v with %d", got, len(list.Items), suspended, snapshots)
		}
	}
	take(all[:2], true, 1)
	take(all, false, 1)
	take(all[:2], true, 1)
	message := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended).Message
	_, token, _ := strings.Cut(message, placementv1beta1.ConfirmRemovalAnnotation+"=")
	placement.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: token}
	take(all[:2], false, 2)
}

func TestSizeOf_CountsContentsOfEnvelopesAndChartsAsLarge(t *testing.T) {
	const chart = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"cni","annotations":{"fleetgate.io/helm-chart":"cni"}}}`
	group := &Group{}
	s := snapshotOf(service, envelope("ResourceEnvelope", "shop", `{"a":`+quota+`,"b":`+service+`}`), chart, role)
	if err := group.add(s, Envelopes{Charts: true}); err != nil || group.Fault != nil {
		t.Fatal(err, group.Fault)
	}
	if got, want := sizeOf(group, group.Resources), 1+2+placementv1beta1.LargeRemovalLeast+1; got != want {
		t.Errorf("size %d, want %d", got, want)
	}
}

func TestSuspendRemoval_CountsContentsOfAnEnvelope(t *testing.T) {
	r, hub, placement, selected := selecting(t)
	id := placementv1beta1.ResourceIdentifier{Group: placementv1beta1.GroupName, Version: "v1beta1", Kind: "ResourceEnvelope", Namespace: "shop", Name: "e"}
	group, err := r.Snapshots.Group(t.Context(), types.NamespacedName{Name: "p-0-snapshot"})
	if err != nil {
		t.Fatal(err)
	}
	with := *group
	with.Resources = append(slices.Clone(group.Resources), id)
	with.Parts = append(slices.Clone(group.Parts), Part{Envelope: &placementv1beta1.EnvelopeIdentifier{Name: "e", Namespace: "shop", Type: "ResourceEnvelope"},
		Resources: make([]placementv1beta1.ResourceIdentifier, 5)})
	if err := hub.Create(t.Context(), &placementv1beta1.ResourceEnvelope{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}}); err != nil {
		t.Fatal(err)
	}
	r.Snapshots, selected.names = fixedGroup{&with}, selected.names[:9]
	if _, err := r.Take(t.Context(), placement); err != nil {
		t.Fatal(err)
	}
	c := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended)
	if c == nil || !strings.HasPrefix(c.Message, "6 of 15 objects would be removed from the members ") || !strings.Contains(c.Message, ": ConfigMap shop/c-9, ResourceEnvelope shop/e.") {
		t.Errorf("condition %v", c)
	}
}

type fixedGroup struct{ group *Group }

func (f fixedGroup) Group(context.Context, types.NamespacedName) (*Group, error) { return f.group, nil }

// Resource snapshots store the hash. Another value would hide that selectors are unchanged.
func TestSelectorsHash_StaysTheSame(t *testing.T) {
	spec := &placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: "shop"}}}
	if got, want := selectorsHash(spec), "2203fa2764880f6e60f0c03b9dc8c513672bc4c91173035a770f8b0582b8a240"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// uncached reads each group again: the objects of a fake hub have no UIDs by which they differ.
func uncached(hub client.Client) *Contents { return NewContents(hub, hub, Envelopes{}) }

func TestSuspendRemoval_CountsSmallRemovalsWithinTenMinutesTogether(t *testing.T) {
	r, hub, placement, selected := selecting(t)
	clock := testingclock.NewFakePassiveClock(time.Now())
	r.Clock = clock
	all := selected.names
	take := func(names []string, passes time.Duration, suspends bool) {
		t.Helper()
		clock.SetTime(clock.Now().Add(passes))
		selected.names, r.Snapshots = names, uncached(hub)
		if _, err := r.Take(t.Context(), placement); err != nil {
			t.Fatal(err)
		}
		if got := meta.IsStatusConditionTrue(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended); got != suspends {
			t.Fatalf("with %v: suspended %v, want %v", names, got, suspends)
		}
	}
	take(all[:9], 0, false)
	take(all[:8], 11*time.Minute, false)
	take(all[:7], time.Minute, false)
	take(all, time.Minute, false)
	take(all[:7], time.Minute, false)
	// A restarted gateway reads the record.
	r = &Reconciler{Client: hub, Live: hub, Selector: selected, Users: nothing{}, Recorder: events.NewFakeRecorder(10), Clock: clock}
	take(all[:6], time.Minute, false)
	take(all[:5], time.Minute, true)
	take(all[:5], time.Hour, true)
	message := meta.FindStatusCondition(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended).Message
	if !strings.HasPrefix(message, "1 of 6 objects would be removed from the members after 4 others within 10m ") {
		t.Errorf("message %q", message)
	}
	take(all[:6], time.Minute, false)
	take(all[:5], 0, false)
}

func TestSuspendRemoval_CountsFromZeroAfterAConfirmation(t *testing.T) {
	r, hub, placement, selected := selecting(t)
	all := selected.names
	suspendedWith := func(n int) bool {
		t.Helper()
		selected.names, r.Snapshots = all[:n], uncached(hub)
		if _, err := r.Take(t.Context(), placement); err != nil {
			t.Fatal(err)
		}
		return meta.IsStatusConditionTrue(placement.Status.Conditions, placementv1beta1.ConditionRemovalSuspended)
	}
	if suspendedWith(6) || !suspendedWith(5) {
		t.Fatal("the fifth of ten is not suspended")
	}
	placement.Annotations = map[string]string{placementv1beta1.ConfirmRemovalAnnotation: placementv1beta1.RemovalToken([]string{"ConfigMap shop/c-5"})}
	if suspendedWith(5) || suspendedWith(4) {
		t.Error("suspended after a confirmation")
	}
	if err := hub.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c-3"}}); err != nil {
		t.Fatal(err)
	}
	if suspendedWith(3) || suspendedWith(0) {
		t.Error("objects that were deleted on the hub count")
	}
}
