// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// job returns the manifest of a Job, with a TTL if it is not empty.
func job(image, ttl string) string {
	if ttl != "" {
		ttl = `"ttlSecondsAfterFinished":` + ttl + `,`
	}
	return fmt.Sprintf(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"ns","name":"migrate"},"spec":{%s"template":{"spec":{"containers":[{"name":"run","image":%q}]}}}}`, ttl, image)
}

func jobItem(t *testing.T, text string) Item {
	t.Helper()
	kinds := apimeta.NewDefaultRESTMapper(nil)
	kinds.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, apimeta.RESTScopeNamespace)
	items, err := plan(raw(text), kinds)
	if err != nil {
		t.Fatal(err)
	}
	return WithMode(items, Mode{Method: Merge})[0]
}

// liveJob returns our Job on the member, with a condition if it is not empty.
func liveJob(t *testing.T, text, condition string, goes bool) *unstructured.Unstructured {
	t.Helper()
	live, _ := (&Engine{Dialect: ours()}).desire(recordRef("us", "1"), jobItem(t, text), nil)
	live.SetUID("1")
	if condition != "" {
		said := []any{map[string]any{"type": condition, "status": "True", "reason": "BecauseOfThis"}}
		if err := unstructured.SetNestedSlice(live.Object, said, "status", "conditions"); err != nil {
			t.Fatal(err)
		}
	}
	if goes {
		live.SetDeletionTimestamp(&early)
		live.SetFinalizers([]string{"foregroundDeletion"})
	}
	return live
}

func TestRun_DoesNotRepeatACompletedJob(t *testing.T) {
	short := job("migrate:1", "15")
	plain := job("migrate:1", "")
	hash := jobItem(t, short).run
	ended := func(result string) Run { return Run{ManifestHash: hash, Result: result, Reason: "BecauseOfThis"} }
	cases := map[string]struct {
		manifest string
		live     *unstructured.Unstructured
		known    *Entry
		last     *unstructured.Unstructured // what the watch of the object saw
		made     bool
		state    availability.State
		refused  bool
		learnt   Run
	}{
		"the first time it is made":                       {manifest: short, made: true, state: availability.NotTrackable, learnt: Run{ManifestHash: hash}},
		"one that is entered and was never made is made":  {manifest: short, known: &Entry{}, made: true, state: availability.NotTrackable, learnt: Run{ManifestHash: hash}},
		"complete and gone":                               {manifest: short, known: &Entry{UID: "1", Run: ended("Complete")}, state: availability.Completed, learnt: ended("Complete")},
		"failed and gone":                                 {manifest: short, known: &Entry{UID: "1", Run: ended("Failed")}, state: availability.Failed, learnt: ended("Failed")},
		"complete and removed by hand":                    {manifest: plain, known: &Entry{UID: "1", Run: ended("Complete")}, state: availability.Completed, learnt: ended("Complete")},
		"gone before anybody saw it end":                  {manifest: short, known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, state: availability.CompletionUnknown, learnt: Run{ManifestHash: hash}},
		"gone, last seen complete":                        {manifest: short, known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, last: liveJob(t, short, "Complete", true), state: availability.Completed, learnt: ended("Complete")},
		"gone, last seen to run":                          {manifest: short, known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, last: liveJob(t, short, "", true), state: availability.CompletionUnknown, learnt: Run{ManifestHash: hash}},
		"another object was seen":                         {manifest: short, known: &Entry{UID: "0", Run: Run{ManifestHash: hash}}, last: liveJob(t, short, "Complete", true), state: availability.CompletionUnknown, learnt: Run{ManifestHash: hash}},
		"another run was seen":                            {manifest: job("migrate:2", "15"), known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, last: liveJob(t, short, "Complete", true), made: true, learnt: Run{ManifestHash: jobItem(t, job("migrate:2", "15")).run}},
		"gone, applied by an agent that recorded no runs": {manifest: short, known: &Entry{UID: "1"}, state: availability.CompletionUnknown, learnt: Run{ManifestHash: hash}},
		"deleted while it ran, and it does not expire":    {manifest: plain, known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, made: true, state: availability.NotTrackable, learnt: Run{ManifestHash: hash}},
		"another image": {manifest: job("migrate:2", "15"), known: &Entry{UID: "1", Run: ended("Complete")}, made: true, state: availability.NotTrackable,
			learnt: Run{ManifestHash: jobItem(t, job("migrate:2", "15")).run}},
		"another time to live":                      {manifest: job("migrate:1", "30"), known: &Entry{UID: "1", Run: ended("Complete")}, state: availability.Completed, learnt: ended("Complete")},
		"it is seen to be complete":                 {manifest: short, live: liveJob(t, short, "Complete", false), known: &Entry{UID: "1"}, state: availability.Completed, learnt: ended("Complete")},
		"it is seen to have failed":                 {manifest: short, live: liveJob(t, short, "Failed", false), known: &Entry{UID: "1"}, state: availability.Failed, learnt: ended("Failed")},
		"complete and terminating":                  {manifest: short, live: liveJob(t, short, "Complete", true), known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, state: availability.Completed, learnt: ended("Complete")},
		"terminating while it runs":                 {manifest: short, live: liveJob(t, short, "", true), known: &Entry{UID: "1", Run: Run{ManifestHash: hash}}, refused: true, learnt: Run{ManifestHash: hash}},
		"an older run is complete and terminating":  {manifest: job("migrate:2", ""), live: liveJob(t, short, "Complete", true), known: &Entry{UID: "1", Run: ended("Complete")}, refused: true, learnt: ended("Complete")},
		"re-created by another client, and running": {manifest: short, live: liveJob(t, short, "", false), known: &Entry{UID: "0", Run: ended("Complete")}, state: availability.NotTrackable, learnt: ended("Complete")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time), objects...)
			work.Owner = DefaultOwner{}
			work.lastState = func(uid types.UID) *unstructured.Unstructured {
				if tc.last == nil || tc.last.GetUID() != uid {
					return nil
				}
				return tc.last
			}
			it := jobItem(t, tc.manifest)
			var before []Entry
			if tc.known != nil {
				tc.known.Ref = it.Ref
				before = []Entry{*tc.known}
			}
			work.runs = runsIn(before, []Item{it})
			out := e.run(t.Context(), work, []Item{it})[0]
			made := false
			for _, action := range e.member.(*fake.FakeDynamicClient).Actions() {
				made = made || action.GetVerb() == "create"
			}
			if made != tc.made || (out.Refused != nil) != (tc.refused || tc.made) { // the fake gives no UID, which refuses what it makes
				t.Errorf("made: %t, outcome %+v, refused for %v", made, out, out.Refused)
			}
			if !tc.made && out.Availability.State != tc.state {
				t.Errorf("availability is %+v", out.Availability)
			}
			if tc.made {
				out = e.applied(t.Context(), work, it, nil, secondJob(it.object))
			}
			entries := recorded(before, before, []Item{it}, []ManifestResult{out}, nil)
			if len(entries) != 1 || entries[0].Run != tc.learnt {
				t.Errorf("the ledger is %+v", entries)
			}
		})
	}
}

func secondJob(object *unstructured.Unstructured) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetUID("2")
	return object
}

func TestRun_PlansRememberWhatRuns(t *testing.T) {
	kept := plans{}
	it := jobItem(t, job("migrate:1", "15"))
	kept.keep(1, []Item{it})
	items, ok := kept.of(1, raw(job("migrate:1", "15")))
	if !ok || items[0].run == "" || items[0].run != it.run || !items[0].expires {
		t.Errorf("the plan is %+v", items)
	}
}

func TestRunHash_CountsOnlyWhatIsRun(t *testing.T) {
	base := job("migrate:1", "15")
	labelled := jobItem(t, base)
	labelled.object.SetLabels(map[string]string{"chart": "web-2"})
	if got := runHash(labelled.object); got != labelled.run {
		t.Error("a label makes another run")
	}
	if it := jobItem(t, job("migrate:2", "15")); it.run == labelled.run {
		t.Error("another image is the same run")
	}
	configMap := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "spec": map[string]any{}}}
	if runHash(configMap) != "" {
		t.Error("a ConfigMap runs")
	}
	if spec, _, _ := unstructured.NestedInt64(labelled.object.Object, "spec", "ttlSecondsAfterFinished"); spec != 15 {
		t.Error("hashing changed the manifest")
	}
}

// The ledger stores the hash. Another value would run every Job again.
func TestRunHash_StaysTheSame(t *testing.T) {
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job", "spec": map[string]any{"parallelism": int64(2), "ttlSecondsAfterFinished": int64(5)},
	}}
	if got, want := runHash(job), "bf0b3171f3bfc9fd1997a7298ae8c8c24ae86cedf6080fa93c66a3a3a874ee02"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
