// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	testingclock "k8s.io/utils/clock/testing"

	"fleetgate.io/fleetgate/pkg/work/apply/merge"
)

// engineOn is an engine on a member that holds objects, and a task for it.
func engineOn(t *testing.T, now *testingclock.FakePassiveClock, objects ...runtime.Object) (*engine, task) {
	t.Helper()
	e := &engine{
		member:   fake.NewSimpleDynamicClient(scheme.Scheme, objects...),
		merger:   merge.Merger{Known: scheme.Scheme},
		clock:    now,
		parallel: 1,
	}
	return e, task{
		owner:    recordRef("us", "1"),
		strategy: withDefaults(nil),
		memory:   newMemory().of("work"),
		seen:     func(item) (string, bool) { return "", false },
	}
}

func configMapItem(t *testing.T, value string) item {
	t.Helper()
	items, err := plan(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"},"data":{"a":"`+value+`"}}`), kindsOfAMember())
	if err != nil {
		t.Fatal(err)
	}
	items[0].resource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return items[0]
}

func TestAKindOfWhichNothingIsKeptIsRefused(t *testing.T) {
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time)) // the fake gives no UID, as virtual kinds do
	out := e.run(t.Context(), work, []item{configMapItem(t, "1")})[0]
	if out.refused == nil || !strings.Contains(out.refused.message, "keeps none") || out.holds {
		t.Errorf("the outcome is %+v", out)
	}
}

func TestAContestedObjectThatNeedsNoRepairIsNotPostponed(t *testing.T) {
	now := testingclock.NewFakePassiveClock(early.Time)
	it := configMapItem(t, "ours")
	_, work := engineOn(t, now)
	wanted, _, err := desire(work, it, nil)
	if err != nil {
		t.Fatal(err)
	}
	wanted.SetUID("1")
	changed := wanted.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, "theirs", "data", "a"); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		live      *unstructured.Unstructured
		postponed bool
	}{
		"as it is wanted": {wanted, false},
		"changed again":   {changed, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, work := engineOn(t, now, tc.live)
			work.memory.begin([]item{it}, "terms", now.Now(), time.Hour)
			for range freeRepairs + 1 {
				work.memory.settle(it, "1", outcome{}, &contest{manager: "other"}, now.Now())
			}
			out := e.run(t.Context(), work, []item{it})[0]
			if got := out.postponed > 0; got != tc.postponed || out.err != nil || out.refused != nil {
				t.Errorf("the outcome is %+v", out)
			}
			if out.against == nil || out.quietIn != quietUntilPast {
				t.Errorf("it is contested by %v for %s", out.against, out.quietIn)
			}
		})
	}
}
