// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/engine/merge"
)

// engineOn returns an engine on a member with objects, and a task for it.
func engineOn(t *testing.T, now *testingclock.FakePassiveClock, objects ...runtime.Object) (*Engine, task) {
	t.Helper()
	e := &Engine{
		Dialect: ours(),
		family:  testFamily(""),
		member:  fake.NewSimpleDynamicClient(scheme.Scheme, objects...),
		merger:  merge.Merger{Known: scheme.Scheme},
		clock:   now,
		tuning:  Tuning{Manifests: 1},
		watch:   memberwatch.New(nil, nil).For(schema.GroupVersionResource{Version: "v1", Resource: "records"}, nil),
	}
	return e, task{
		Work:      Work{Record: recordRef("us", "1"), Owner: testOwner{mayWrite: mayAlone}},
		cache:     &newCaches().of("work").objects,
		observed:  func(Item) memberwatch.Observation { return memberwatch.Observation{} },
		lastState: func(types.UID) *unstructured.Unstructured { return nil },
	}
}

// mayAlone allows no other owners.
func mayAlone(s Ownership) *refusal.Refusal {
	if s.Shared() {
		return &refusal.Refusal{Reason: TakenByOthers, Message: "The object is owned by another AppliedWork"}
	}
	return nil
}

func configMapItem(t *testing.T, value string) Item {
	t.Helper()
	items, err := plan(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"},"data":{"a":"`+value+`"}}`), kindsOfAMember())
	if err != nil {
		t.Fatal(err)
	}
	items[0].resource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return WithMode(items, Mode{Method: Merge})[0]
}

func TestRun_RefusesAVirtualKindThatIsNotStored(t *testing.T) {
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time)) // the fake gives no UID, as virtual kinds do
	out := e.run(t.Context(), work, []Item{configMapItem(t, "1")})[0]
	if out.Refused == nil || !strings.Contains(out.Refused.Message, "does not store them") || out.Owned {
		t.Errorf("the result is %+v", out)
	}
}

func TestRun_DoesNotPostponeAContestedObjectWithoutDifferences(t *testing.T) {
	now := testingclock.NewFakePassiveClock(early.Time)
	it := configMapItem(t, "ours")
	e, work := engineOn(t, now)
	wanted, _ := e.desire(work.Record, it, nil)
	wanted.SetUID("1")
	changed := wanted.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, "theirs", "data", "a"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		live      *unstructured.Unstructured
		postponed bool
	}{
		"up to date":    {wanted, false},
		"changed again": {changed, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, work := engineOn(t, now, tc.live)
			work.cache.begin([]Item{it}, "terms", now.Now(), time.Hour)
			for range freeCorrections + 1 {
				work.cache.store(it, "1", ManifestResult{}, &Contest{Manager: "other"}, now.Now())
			}
			out := e.run(t.Context(), work, []Item{it})[0]
			if got := out.Postponed > 0; got != tc.postponed || out.Err != nil || out.Refused != nil {
				t.Errorf("the result is %+v", out)
			}
			if out.Contest == nil || out.ContestEndsIn != contestLength {
				t.Errorf("it is contested by %v for %s", out.Contest, out.ContestEndsIn)
			}
		})
	}
}

func TestRun_RefusesAContestedObjectThatLacksFieldsInTheRehearsalToo(t *testing.T) {
	now := testingclock.NewFakePassiveClock(early.Time)
	it := configMapItem(t, "ours")
	it.Mode.Method = ServerSide
	e, work := engineOn(t, now)
	live, _ := e.desire(work.Record, it, nil)
	live.SetUID("1")
	unstructured.RemoveNestedField(live.Object, "data") // as a member whose version of the kind lacks the field
	e, work = engineOn(t, now, live)
	e.member.(*fake.FakeDynamicClient).PrependReactor("patch", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, live, nil
	})
	work.cache.begin([]Item{it}, "terms", now.Now(), time.Hour)
	for range freeCorrections + 1 {
		work.cache.store(it, "1", ManifestResult{}, &Contest{Manager: "us"}, now.Now())
	}
	out := e.run(t.Context(), work, []Item{it})[0]
	if out.Refused == nil || out.Refused.Reason != FieldsNotApplied {
		t.Errorf("the result is %+v", out)
	}
}

func TestRun_SparesRequestsByTheWatch(t *testing.T) {
	us := recordRef("us", "1")
	absent := memberwatch.Observation{Reached: "7"}
	create := []string{"create"}
	cases := map[string]struct {
		live     *corev1.ConfigMap
		method   Method
		observed memberwatch.Observation
		asked    []string
		refused  bool
	}{
		"a missing object is created":                                   {nil, "", absent, create, false},
		"an object without a watch is read":                             {nil, "", memberwatch.Observation{}, []string{"get", "create"}, false},
		"an existing object is read after the failed create and merged": {configMapOf(us), "", absent, []string{"create", "get", "patch"}, false},
		"an existing object of another owner stays":                     {configMapOf(recordRef("other", "2")), "", absent, []string{"create", "get"}, true},
		"a server-side apply always reads first":                        {configMapOf(recordRef("other", "2")), ServerSide, absent, []string{"get"}, true},
		"a comparison always reads first":                               {configMapOf(us), Compare, absent, []string{"get", "patch"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time), objects...)
			work.observed = func(Item) memberwatch.Observation { return tc.observed }
			it := configMapItem(t, "1")
			if tc.method != "" {
				it.Mode.Method = tc.method
			}
			out := e.run(t.Context(), work, []Item{it})[0]
			var asked []string
			for _, action := range e.member.(*fake.FakeDynamicClient).Actions() {
				asked = append(asked, action.GetVerb())
			}
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if tc.refused != (out.Refused != nil && strings.Contains(out.Refused.Message, "another AppliedWork")) {
				t.Errorf("the result is %+v", out)
			}
		})
	}
}

func TestMirrored_HasOnlyIdentityAndStatus(t *testing.T) {
	got := mirrored(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"name": "a", "namespace": "ns", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{}, "status": map[string]any{"phase": "x"}}})
	want := map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a"}, "status": map[string]any{"phase": "x"}}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}
