// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	fake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
)

// changesWrites lets the member change written objects, as a mutating webhook does.
func changesWrites(t *testing.T, e *Engine, change func(*unstructured.Unstructured)) {
	t.Helper()
	member, ok := e.member.(*fake.FakeDynamicClient)
	if !ok {
		t.Fatal("this member cannot change anything")
	}
	member.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if write, is := action.(clienttesting.CreateAction); is {
			if object, is := write.GetObject().(*unstructured.Unstructured); is {
				object.SetUID("1")
				change(object)
			}
		}
		return false, nil, nil
	})
}

func TestVerify_NamesAFieldThatTheMemberChanged(t *testing.T) {
	for _, by := range []Method{Merge, Replace} {
		t.Run(string(by), func(t *testing.T) {
			e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
			changesWrites(t, e, func(o *unstructured.Unstructured) { o.Object["data"] = map[string]any{"a": "other"} })
			it := WithMode([]Item{configMapItem(t, "new")}, Mode{Method: by})[0]
			out := e.run(t.Context(), work, []Item{it})[0]
			if out.Refused == nil || out.Refused.Reason != FieldsNotApplied || !out.Owned || out.Final {
				t.Fatalf("the result is %+v, refused %+v", out, out.Refused)
			}
			const want = "/data/a is other instead of new. A mutating webhook of the member changed it"
			if !strings.Contains(out.Refused.Message, want) {
				t.Errorf("the message is %q", out.Refused.Message)
			}
		})
	}
}

func TestVerify_SendsNoRequest(t *testing.T) {
	e, work := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	changesWrites(t, e, func(*unstructured.Unstructured) {})
	out := e.run(t.Context(), work, []Item{configMapItem(t, "new")})[0]
	if out.Refused != nil {
		t.Fatalf("refused: %+v", out.Refused)
	}
	if diff := cmp.Diff([]string{"get", "create"}, verbs(e)); diff != "" {
		t.Errorf("what was asked of the member (-want +got):\n%s", diff)
	}
}

func TestVerify_NamesTheManagerThatHoldsTheField(t *testing.T) {
	written := foundConfigMap()
	written.SetManagedFields([]metav1.ManagedFieldsEntry{ownedBy("webhook", metav1.ManagedFieldsOperationUpdate, "v1", `{"f:data":{"f:a":{}}}`)})
	e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	refused := e.verify(configMapItem(t, "new"), written)
	if refused == nil || !strings.Contains(refused.Message, `Field manager "webhook" holds it`) {
		t.Errorf("refused: %+v", refused)
	}
}

func TestVerify_RepeatsNoValueOfASecret(t *testing.T) {
	object := func(value string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"a": value}}}
	}
	e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	refused := e.verify(Item{object: object("aGlkZGVu"), Mode: Mode{Method: Merge}}, object("b3RoZXI="))
	if refused == nil || strings.Contains(refused.Message, "aGlkZGVu") || strings.Contains(refused.Message, "b3RoZXI=") {
		t.Errorf("refused: %+v", refused)
	}
}

func TestVerify_IgnoresReadOnlyAndCreateOnly(t *testing.T) {
	e, _ := engineOn(t, testingclock.NewFakePassiveClock(early.Time))
	for _, by := range []Method{ReadOnly, CreateOnly, Compare} {
		if refused := e.verify(WithMode([]Item{configMapItem(t, "new")}, Mode{Method: by})[0], foundConfigMap()); refused != nil {
			t.Errorf("%s: refused: %+v", by, refused)
		}
	}
}
