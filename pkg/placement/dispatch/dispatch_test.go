// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

func binding() *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "p-m-0", UID: "u", Generation: 2, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "p"},
	}}
	b.Spec.TargetCluster, b.Spec.ResourceSnapshotName, b.Spec.State = "m", "p-3-snapshot", placementv1beta1.BindingBound
	b.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ServerSideApply}
	return b
}

func manifests(texts ...string) []placementv1beta1.Manifest {
	var all []placementv1beta1.Manifest
	for _, text := range texts {
		all = append(all, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
	}
	return all
}

// built are the Works of a binding to a member that has not joined.
func built(t *testing.T, b placementv1beta1.BindingObject, parts ...part) []desiredWork {
	t.Helper()
	works, err := build(input{binding: b, member: memberNamed("m")}, "3", parts)
	if err != nil {
		t.Fatal(err)
	}
	return works
}

// plain is a part of a snapshot without an envelope.
func plain(texts ...string) part { return part{Part: snapshot.Part{Manifests: manifests(texts...)}} }

func TestBuild(t *testing.T) {
	works := built(t, binding(), plain("{}"), plain("[]"))
	var got []string
	for _, w := range works {
		got = append(got, w.Namespace+"/"+w.Name+" "+string(w.Spec.Workload.Manifests[0].Raw))
	}
	if diff := cmp.Diff([]string{"fleet-member-m/p-work {}", "fleet-member-m/p-0 []"}, got); diff != "" {
		t.Errorf("works (-want +got):\n%s", diff)
	}
	w := works[0]
	labels := map[string]string{
		"kubernetes-fleet.io/parent-CRP": "p", "kubernetes-fleet.io/parent-resource-binding": "p-m-0",
		"kubernetes-fleet.io/parent-resource-snapshot-index": "3",
	}
	if diff := cmp.Diff(labels, w.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if w.Spec.ApplyStrategy.Type != placementv1beta1.ServerSideApply || w.OwnerReferences[0].UID != "u" {
		t.Errorf("the apply strategy or the owner is missing: %+v", w)
	}
}

func TestBuild_OneWorkPerEnvelope(t *testing.T) {
	e := &placementv1beta1.EnvelopeIdentifier{Type: placementv1beta1.ResourceEnvelopeType, Namespace: "shop", Name: "quotas"}
	enveloped := plain("{}")
	enveloped.Envelope = e
	works := built(t, binding(), plain("{}"), enveloped, plain("{}"))
	var got []string
	for _, w := range works {
		got = append(got, w.Name)
	}
	if diff := cmp.Diff([]string{"p-work", placementv1beta1.EnvelopeWorkName("", "p", *e), "p-0"}, got); diff != "" {
		t.Errorf("works (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(e, envelopeOf(works[1].Work)); diff != "" {
		t.Errorf("the Work names another envelope (-want +got):\n%s", diff)
	}
	if envelopeOf(works[0].Work) != nil {
		t.Errorf("Work without an envelope has envelope labels: %v", works[0].Labels)
	}
}

func TestNewFirst_WritesMissingWorksFirst(t *testing.T) {
	changes := []change{{existing: work("p-work")}, {}, {existing: work("p-1")}, {}}
	if diff := cmp.Diff([]int{1, 3, 0, 2}, newFirst(changes)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestBuild_NamesNamespacedPlacement(t *testing.T) {
	b := &placementv1beta1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "p"}}}
	b.Spec.TargetCluster = "m"
	works := built(t, b, plain())
	if w := works[0]; w.Name != "shop.p-work" || w.Labels[placementv1beta1.ParentPlacementNamespaceLabel] != "shop" || !belongs(w.Work, b) {
		t.Errorf("work = %q with labels %v", w.Name, w.Labels)
	}
	// The hub's garbage collector deleted such Works repeatedly.
	if owners := works[0].OwnerReferences; len(owners) > 0 {
		t.Errorf("binding of another namespace owns the Work: %v", owners)
	}
	if belongs(works[0].Work, binding()) {
		t.Error("Work of a namespaced placement belongs to a cluster-scoped one")
	}
}

func TestUpToDate(t *testing.T) {
	p := plain(`{"a":"<b>"}`)
	var err error
	if p.Hash, err = snapshot.Hash(p.Manifests); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(*placementv1beta1.Work)
		want   bool
	}{
		"untouched":                          {func(*placementv1beta1.Work) {}, true},
		"same manifests in another encoding": {func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = manifests(`{ "a": "\u003cb\u003e" }`) }, true},
		"additional labels":                  {func(w *placementv1beta1.Work) { w.Labels["x"] = "y" }, true},
		"another snapshot":                   {func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel] = "2" }, false},
		"edited manifests":                   {func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = nil }, false},
		"another apply strategy":             {func(w *placementv1beta1.Work) { w.Spec.ApplyStrategy = nil }, false},
		"unreadable manifests":               {func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = manifests("{") }, false},
		"a previous gateway made it":         {func(w *placementv1beta1.Work) { delete(w.Annotations, placementv1beta1.DeletionCauseAnnotation) }, true},
		"a cause of a deletion that did not happen": {func(w *placementv1beta1.Work) {
			w.Annotations[placementv1beta1.DeletionCauseAnnotation] = placementv1beta1.DeletionPlacementChanged
		}, false},
		"other overrides": {func(w *placementv1beta1.Work) {
			w.Annotations[placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation] = "x"
		}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			desired := built(t, binding(), p)[0]
			have := desired.DeepCopy()
			tc.change(have)
			cached, err := forget(have)
			if err != nil {
				t.Fatal(err)
			}
			w := cached.(*placementv1beta1.Work)
			if w.Spec.Workload.Manifests != nil {
				t.Error("the cache stores manifests")
			}
			got, err := upToDate(w, desired)
			if err != nil || got != tc.want {
				t.Errorf("upToDate() = %t, %v, want %t", got, err, tc.want)
			}
			if changed := overwrite(w, desired.Work); changed.Annotations[manifestsHashKey] != "" || len(changed.Spec.Workload.Manifests) != 1 {
				t.Error("the hash of the cache would be written, or manifests are lost")
			}
		})
	}
}

// work is a Work with conditions as "Type=Status/Reason". One with the prefix "old " is about an older
// spec.
func work(name string, conditions ...string) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 4}}
	for _, text := range conditions {
		text, old := strings.CutPrefix(text, "old ")
		kind, rest, _ := strings.Cut(text, "=")
		status, reason, _ := strings.Cut(rest, "/")
		c := metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, ObservedGeneration: 4}
		if old {
			c.ObservedGeneration = 3
		}
		w.Status.Conditions = append(w.Status.Conditions, c)
	}
	return w
}

func TestDesiredStatus(t *testing.T) {
	const applied, available = "Applied=True/AllManifestsApplied", "Available=True/AllManifestsAvailable"
	begin := []string{"Overridden=True/NoOverrideSpecified", "WorkSynchronized=True/AllWorkSynced"}
	cases := map[string]struct {
		works   []*placementv1beta1.Work
		problem string
		diff    bool
		want    []string
	}{
		"applied and available":       {works: []*placementv1beta1.Work{work("a", applied, available)}, want: append(begin[:2:2], "Applied=True/AllWorkHaveBeenApplied", "Available=True/AllWorkAreAvailable")},
		"no conditions yet":           {works: []*placementv1beta1.Work{work("a")}, want: append(begin[:2:2], "Applied=False/ApplyInProgress")},
		"conditions of an older spec": {works: []*placementv1beta1.Work{work("a", "old "+applied, "old "+available)}, want: append(begin[:2:2], "Applied=False/ApplyInProgress")},
		"one of two failed":           {works: []*placementv1beta1.Work{work("a", applied, available), work("b", "Applied=False/x")}, want: append(begin[:2:2], "Applied=False/NotAllWorkHaveBeenApplied")},
		"failed outweighs pending":    {works: []*placementv1beta1.Work{work("a"), work("b", "Applied=False/x")}, want: append(begin[:2:2], "Applied=False/NotAllWorkHaveBeenApplied")},
		"applied, not available":      {works: []*placementv1beta1.Work{work("a", applied, "Available=False/x")}, want: append(begin[:2:2], "Applied=True/AllWorkHaveBeenApplied", "Available=False/NotAllWorkAreAvailable")},
		"availability unknown":        {works: []*placementv1beta1.Work{work("a", applied)}, want: append(begin[:2:2], "Applied=True/AllWorkHaveBeenApplied", "Available=False/NotAllWorkAreAvailable")},
		"availability not trackable":  {works: []*placementv1beta1.Work{work("a", applied, available), work("b", applied, "Available=True/WorkNotTrackable")}, want: append(begin[:2:2], "Applied=True/AllWorkHaveBeenApplied", "Available=True/NotAllWorkAreAvailabilityTrackable")},
		"works could not be written":  {problem: "no", want: []string{"Overridden=True/NoOverrideSpecified", "WorkSynchronized=False/SyncWorkFailed"}},
		"differences reported":        {diff: true, works: []*placementv1beta1.Work{work("a", "DiffReported=True/x")}, want: append(begin[:2:2], "DiffReported=True/AllWorkHaveDiffReported")},
		"differences not reported":    {diff: true, works: []*placementv1beta1.Work{work("a", "DiffReported=False/x")}, want: append(begin[:2:2], "DiffReported=False/NotAllWorkHaveDiffReported")},
		"differences pending":         {diff: true, works: []*placementv1beta1.Work{work("a")}, want: append(begin[:2:2], "DiffReported=False/DiffReportInProgress")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding()
			if tc.diff {
				b.Spec.ApplyStrategy.Type = placementv1beta1.ReportDiff
			}
			status := desiredStatus(b, synced{works: tc.works, problem: tc.problem})
			var got []string
			for _, c := range status.Conditions {
				if c.ObservedGeneration != b.Generation {
					t.Errorf("%s has generation %d", c.Type, c.ObservedGeneration)
				}
				if c.Type == placementv1beta1.ConditionRolloutStarted {
					continue // It has its own test.
				}
				got = append(got, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesiredStatus_NamesMemberWithoutHeartbeat(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	member.Status.Conditions = []metav1.Condition{{
		Type: clusterv1beta1.ConditionJoined, Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterJoinStateUnknown,
		LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 31, 12, 3, 0, 0, time.UTC)), // When the hub stopped waiting.
	}}
	if got := objects.NoHeartbeat(member); got != "" {
		t.Errorf("joining member is reported without heartbeat: %s", got)
	}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.NewTime(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)),
	}}
	const silent = `, and member "edge" has had no heartbeat since 2026-01-31T12:00:00Z: see its condition Joined`
	for name, tc := range map[string]struct {
		of        string
		works     []string
		diff      bool
		heardWant string
	}{
		"applying":  {of: placementv1beta1.ConditionApplied, heardWant: `Work "a" is being applied`},
		"available": {of: placementv1beta1.ConditionAvailable, works: []string{"Applied=True/x"}, heardWant: `Work "a" is not available yet`},
		"comparing": {of: placementv1beta1.ConditionDiffReported, diff: true, heardWant: `Work "a" is finding its differences`},
	} {
		t.Run(name, func(t *testing.T) {
			b := binding()
			if tc.diff {
				b.Spec.ApplyStrategy.Type = placementv1beta1.ReportDiff
			}
			for said, want := range map[string]string{objects.NoHeartbeat(member): tc.heardWant + silent, "": tc.heardWant} {
				status := desiredStatus(b, synced{works: []*placementv1beta1.Work{work("a", tc.works...)}, noHeartbeat: said})
				if got := meta.FindStatusCondition(status.Conditions, tc.of); got == nil || got.Message != want {
					t.Errorf("got %+v, want %q", got, want)
				}
			}
		})
	}
	member.Status.Conditions[0].Status = metav1.ConditionTrue
	if got := objects.NoHeartbeat(member); got != "" {
		t.Errorf("connected member is reported without heartbeat: %s", got)
	}
}

func TestDesiredStatus_BoundMeansRolloutStarted(t *testing.T) {
	b := binding()
	of := func(generation int64, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: placementv1beta1.ConditionRolloutStarted, Status: status, Reason: "R", ObservedGeneration: generation}}
	}
	cases := map[string]struct {
		state    placementv1beta1.BindingState
		external bool
		before   []metav1.Condition
		want     string
		// begun is the annotation of an update run.
		begun string
	}{
		"no condition yet":                        {placementv1beta1.BindingBound, false, nil, "RolloutStarted=True/RolloutStarted", ""},
		"condition of an older spec":              {placementv1beta1.BindingBound, false, of(b.Generation-1, metav1.ConditionFalse), "RolloutStarted=True/RolloutStarted", ""},
		"rollout waits":                           {placementv1beta1.BindingBound, false, of(b.Generation, metav1.ConditionFalse), "RolloutStarted=False/R", ""},
		"rollout started":                         {placementv1beta1.BindingBound, false, of(b.Generation, metav1.ConditionTrue), "RolloutStarted=True/R", ""},
		"unscheduled binding":                     {placementv1beta1.BindingUnscheduled, false, nil, "Overridden=True/NoOverrideSpecified", ""},
		"unscheduled binding keeps the condition": {placementv1beta1.BindingUnscheduled, false, of(b.Generation-1, metav1.ConditionTrue), "RolloutStarted=True/R", ""},
		"no update run has included the spec":     {placementv1beta1.BindingBound, true, nil, "Overridden=True/NoOverrideSpecified", ""},
		"an update run has included the spec":     {placementv1beta1.BindingBound, true, of(b.Generation-1, metav1.ConditionTrue), "RolloutStarted=True/RolloutStarted", fmt.Sprint(b.Generation)},
		"an update run continues a waiting spec":  {placementv1beta1.BindingBound, true, of(b.Generation, metav1.ConditionFalse), "RolloutStarted=True/RolloutStarted", fmt.Sprint(b.Generation)},
		"an update run has included an old spec":  {placementv1beta1.BindingBound, true, nil, "Overridden=True/NoOverrideSpecified", fmt.Sprint(b.Generation - 1)},
		"no update run has included a later spec": {placementv1beta1.BindingBound, true, of(b.Generation-1, metav1.ConditionTrue), "old RolloutStarted=True/R", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := binding()
			b.Spec.State, b.Status.Conditions = tc.state, tc.before
			b.Annotations = map[string]string{placementv1beta1.RolloutStartedAnnotation: tc.begun}
			first := desiredStatus(b, synced{external: tc.external}).Conditions[0]
			got := fmt.Sprintf("%s=%s/%s", first.Type, first.Status, first.Reason)
			if tc.external && first.ObservedGeneration != b.Generation {
				got = "old " + got
			}
			if got != tc.want {
				t.Errorf("first condition = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestDesiredStatus_NamesObjectsThatRemainOnMember(t *testing.T) {
	cases := map[string]struct{ condition, want string }{
		"nothing remains":      {"Removed=True/x", "All of the works have been applied"},
		"an object is awaited": {"Removed=False/ObjectsRemain", `All of the works have been applied, and the member still has objects that left work "a": ConfigMap shop/x`},
		"objects are retained": {"Retained=True/HubRestored", `All of the works have been applied, and the member still has objects that left work "a": ConfigMap shop/x`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := work("a", "Applied=True/x", "Available=True/x", tc.condition)
			w.Status.Conditions[2].Message = "ConfigMap shop/x"
			status := desiredStatus(binding(), synced{works: []*placementv1beta1.Work{w}})
			if c := meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionApplied); c == nil || c.Message != tc.want {
				t.Errorf("condition Applied = %+v, want message %q", c, tc.want)
			}
		})
	}
}

func TestDesiredStatus_NamesAtMostHundredObjects(t *testing.T) {
	w := work("a", "Applied=False/x")
	for i := range maxDetails + 20 {
		w.Status.ManifestConditions = append(w.Status.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier:   placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Name: fmt.Sprint(i)},
			Conditions:   []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse}},
			DriftDetails: &placementv1beta1.DriftDetails{}, DiffDetails: &placementv1beta1.DiffDetails{},
		})
	}
	s := desiredStatus(binding(), synced{works: []*placementv1beta1.Work{w}})
	if len(s.FailedPlacements) != maxDetails || len(s.DriftedPlacements) != maxDetails || len(s.DiffedPlacements) != maxDetails {
		t.Errorf("%d failed, %d drifted, %d diffed: the API server takes %d", len(s.FailedPlacements), len(s.DriftedPlacements), len(s.DiffedPlacements), maxDetails)
	}
}

func TestRejectPaused_NamesTheRemedy(t *testing.T) {
	paused := map[string]string{"fleetgate.io/paused": "true"}
	cases := map[string]struct {
		placement, member map[string]string
		want              string
	}{
		"nothing is paused":       {nil, nil, ""},
		"another value":           {map[string]string{"fleetgate.io/paused": "false"}, nil, ""},
		"the placement is paused": {paused, nil, "the placement is paused: take annotation fleetgate.io/paused off it to continue"},
		"the member is paused":    {nil, paused, `member "m" is paused: take annotation fleetgate.io/paused off it to continue`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Annotations: c.placement}}
			member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: c.member}}
			err := rejectPaused(placement, member)
			if got := fmt.Sprint(err); (err == nil) != (c.want == "") || err != nil && (got != c.want || refusal.Of(err) == nil) {
				t.Errorf("rejectPaused() = %v, want %q", err, c.want)
			}
		})
	}
}

func TestWrite_KeepsUpToDateWorksWhilePaused(t *testing.T) {
	p := plain("{}")
	p.Hash, _ = snapshot.Hash(p.Manifests)
	desired := built(t, binding(), p)
	other := desired[0].DeepCopy()
	other.Spec.ApplyStrategy = nil
	in := input{binding: binding(), member: memberNamed("m")}
	in.member.Annotations = map[string]string{placementv1beta1.PausedAnnotation: "true"}
	for name, tc := range map[string]struct {
		have    []*placementv1beta1.Work
		refused bool
	}{
		"up-to-date Work": {[]*placementv1beta1.Work{desired[0].Work}, false},
		"no Work":         {nil, true},
		"another Work":    {[]*placementv1beta1.Work{other}, true},
		"a stale Work":    {[]*placementv1beta1.Work{desired[0].Work, work("p-0")}, true},
	} {
		in.works = tc.have
		if _, err := (&Reconciler{}).write(t.Context(), in, desired); (refusal.Of(err) != nil) != tc.refused || (err != nil) != tc.refused {
			t.Errorf("%s: %v, want a refusal: %t", name, err, tc.refused)
		}
	}
}

// Only the reason of Available shows that resources are not trackable. The rollout then waits for
// unavailablePeriodSeconds from the condition's time. From the second rollout on, that was the time of
// the first.
func TestDesiredStatus_TimesBelongToTheGeneration(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	said := func(generation, observed int64) metav1.Condition {
		b, w := binding(), work("p-work")
		b.Generation = generation
		for _, kind := range []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionAvailable} {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{
				Type: kind, Status: metav1.ConditionTrue, Reason: placementv1beta1.ReasonWorkNotTrackable, ObservedGeneration: w.Generation, LastTransitionTime: long})
		}
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionAvailable, Status: metav1.ConditionTrue,
			Reason: placementv1beta1.ReasonNotAllWorkAreAvailabilityTrackable, ObservedGeneration: observed, LastTransitionTime: long}}
		status := desiredStatus(b, synced{works: []*placementv1beta1.Work{w}})
		return *meta.FindStatusCondition(status.Conditions, placementv1beta1.ConditionAvailable)
	}
	if c := said(3, 2); !c.LastTransitionTime.After(long.Time) || c.ObservedGeneration != 3 || c.Status != metav1.ConditionTrue {
		t.Errorf("Available of another generation: %+v, want a new transition time", c)
	}
	if c := said(2, 2); !c.LastTransitionTime.Equal(&long) {
		t.Errorf("Available of the same generation: %+v, want the same transition time", c)
	}
}

// Works store the hashes. Another value would write every Work again.
func TestWorkAnnotations_StayTheSame(t *testing.T) {
	got, err := workAnnotations(&placementv1beta1.ResourceBindingSpec{
		ResourceSnapshotName: "p-3-snapshot", ClusterResourceOverrideSnapshots: []string{"o-0"},
		ResourceOverrideSnapshots: []placementv1beta1.NamespacedName{{Namespace: "shop", Name: "o-1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"kubernetes-fleet.io/parent-resource-snapshot-name":                  "p-3-snapshot",
		"kubernetes-fleet.io/parent-resource-override-snapshot-hash":         "5dd2ff4589efe61386b858b1241aab743eb2153d9f82d286786304eec87d777c",
		"kubernetes-fleet.io/parent-cluster-resource-override-snapshot-hash": "b9d9c6ec3960303f995207b79de450d884dd94ef8eed8c8a50451aaa83622112",
		"fleetgate.io/deletion-cause":                                        "None",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}
