// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"encoding/json"
	"fmt"
	"testing"

	celtypes "github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

func TestUnchanged_DetectsUnchangedFields(t *testing.T) {
	tests := map[string]struct {
		path   admissionv1alpha1.FieldPath
		o, n   string
		expect bool
	}{
		"the same text":                              {"spec.a", `{"spec":{"a":"x"}}`, `{"spec":{"a":"x","b":1}}`, true},
		"another text":                               {"spec.a", `{"spec":{"a":"x"}}`, `{"spec":{"a":"y"}}`, false},
		"none in both":                               {"spec.a.b", `{"spec":{"b":1}}`, `{"spec":{"b":2}}`, true},
		"null in one, none in the other":             {"spec.a", `{"spec":{"a":null}}`, `{"spec":{}}`, true},
		"empty in one, none in the other":            {"spec.a", `{"spec":{"a":""}}`, `{"spec":{}}`, false},
		"something else than a map in the way":       {"spec.a", `{"spec":"x"}`, `{"spec":"x"}`, false},
		"a number of another form":                   {"spec.a", `{"spec":{"a":1}}`, `{"spec":{"a":1.0}}`, false},
		"the same items":                             {"spec.l[name].v", `{"spec":{"l":[{"name":"x","v":1},{"name":"y"}]}}`, `{"spec":{"l":[{"name":"x","v":1},{"name":"y"}]}}`, true},
		"the same items, in another order":           {"spec.l[name].v", `{"spec":{"l":[{"name":"x"},{"name":"y"}]}}`, `{"spec":{"l":[{"name":"y"},{"name":"x"}]}}`, false},
		"no list in both":                            {"spec.l[name].v", `{"spec":{}}`, `{"spec":{}}`, true},
		"two items of one key, as they were":         {"spec.l[name].v", `{"spec":{"l":[{"name":"x","v":1},{"name":"x","v":2}]}}`, `{"spec":{"l":[{"name":"x","v":1},{"name":"x","v":2}]}}`, false},
		"an item without a key, as it was":           {"spec.l[name].v", `{"spec":{"l":[{"v":1}]}}`, `{"spec":{"l":[{"v":1}]}}`, false},
		"items of items, as they were":               {"spec.l[name].m[id].v", `{"spec":{"l":[{"name":"x"}]}}`, `{"spec":{"l":[{"name":"x"}]}}`, false},
		"a map where items should be, as it was":     {"spec.l[name].v", `{"spec":{"l":{"name":"x"}}}`, `{"spec":{"l":{"name":"x"}}}`, false},
		"a part that changed below an immutable one": {"spec.a", `{"spec":{"a":{"b":[1,{"c":2}]}}}`, `{"spec":{"a":{"b":[1,{"c":3}]}}}`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			request, err := NewRequest(updateOf(fmt.Sprintf(`{"kind":"Widget",%s`, tt.o[1:]), fmt.Sprintf(`{"kind":"Widget",%s`, tt.n[1:])))
			if err != nil {
				t.Fatal(err)
			}
			rule := rule{field: stepsOf(tt.path)}
			if got := rule.kept(request); got != tt.expect {
				t.Errorf("got %v, want %v", got, tt.expect)
			}
		})
	}
}

// FuzzKeptRulesHold checks that the expression of a skipped rule would also hold, so that the
// policy has the same meaning as its export. An expression may fail, for example on a list where a
// map should be: then it has no result.
func FuzzKeptRulesHold(f *testing.F) {
	for _, spec := range []string{
		`{}`, `null`, `[]`, `"x"`, `{"a":null}`, `{"a":{"x":[1,{"y":2}]},"b":"","c":0,"d":true,"e":"v1.2.3","g":[2,1,[1],"x",null]}`,
		`{"d":"true","e":1,"f":[{"name":"x"},{"name":"x"},{}],"g":{"x":1}}`, `{"f":[{"name":"x"},"text",null]}`, `{"f":"x","h":"x","k":"x"}`,
		`{"h":[{"name":"x","i":[{"id":1,"j":1},{"id":1,"j":2}]}],"l":[{"name":"x","v":1},{"name":"x","v":2}]}`, `{"l":[{"name":"x","v":1}]}`, `{"l":[{"name":{},"v":1}]}`, `{"l":[[1],7]}`,
		`{"k":{"x":1,"y":{"z":1,"q":2},"l":[{"n":1,"m":2}]}}`, `{"k":{"y":[1],"l":{"n":1}}}`, `{"k":{"l":[1,null,"x"]}}`, `{"k":[1]}`,
	} {
		f.Add([]byte(spec), []byte(spec))
		f.Add([]byte(spec), []byte(`{}`))
	}
	policy := everyMode()
	policy.Spec.Fields = append(policy.Spec.Fields, pathMode("spec.l[name].v", "Immutable"), pathMode("spec.l[name].v", "OnceSet"), pathMode("spec.l[name].v", "NoFalse"))
	compiled := compile(f, newCompiler(f), policy)
	f.Fuzz(func(t *testing.T, old, newer []byte) {
		if !json.Valid(old) || !json.Valid(newer) {
			return
		}
		request, err := NewRequest(updateOf(`{"kind":"Widget","metadata":{"name":"w"},"spec":`+string(old)+`}`, `{"kind":"Widget","metadata":{"name":"w"},"spec":`+string(newer)+`}`))
		if err != nil {
			return
		}
		for i := range compiled.rules {
			if !compiled.rules[i].kept(request) {
				continue
			}
			results, _, err := forInput(t.Context(), plugincel.NewCondition(compiled.conditions[i:i+1]), request, surroundings{}, celconfig.RuntimeCELCostBudget)
			if err == nil && results[0].Error == nil && results[0].EvalResult != celtypes.True {
				t.Errorf("%s from %s to %s is kept, but the expression says %v", compiled.rules[i].path, old, newer, results[0].EvalResult)
			}
		}
	})
}

func updateOf(old, newer string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		Operation: admissionv1.Update, OldObject: runtime.RawExtension{Raw: []byte(old)}, Object: runtime.RawExtension{Raw: []byte(newer)},
	}
}
