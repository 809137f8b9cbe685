// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

func newCompiler(t testing.TB) *Compiler {
	t.Helper()
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return compiler
}

// matchWidgets is the match of the policies in these tests.
func matchWidgets() admissionv1alpha1.PolicyMatch {
	return admissionv1alpha1.PolicyMatch{ResourceRules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.org"}, APIVersions: []string{"*"}, Resources: []string{"widgets"}},
	}}}
}

func policyOf(spec admissionv1alpha1.ImmutabilityPolicySpec) *admissionv1alpha1.ImmutabilityPolicy {
	spec.Match = matchWidgets()
	return &admissionv1alpha1.ImmutabilityPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}, Spec: spec}
}

func compile(t testing.TB, compiler *Compiler, policy *admissionv1alpha1.ImmutabilityPolicy) *Compiled {
	t.Helper()
	compiled, problems := compiler.Compile(policy, true)
	if len(problems) > 0 {
		t.Fatalf("the policy does not compile: %v", problems)
	}
	return compiled
}

// reviewOf is an update, a creation (no old) or a deletion (no new), of a widget whose spec is
// given as YAML.
func reviewOf(t testing.TB, old, newer string) *admissionv1.AdmissionRequest {
	t.Helper()
	review := &admissionv1.AdmissionRequest{
		Kind:     metav1.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"},
		Resource: metav1.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "widgets"},
		Name:     "w", Namespace: "ns", Operation: admissionv1.Update, DryRun: ptr.To(false),
	}
	if old == "" {
		review.Operation = admissionv1.Create
	} else {
		review.OldObject = widget(t, old)
	}
	if newer == "" {
		review.Operation = admissionv1.Delete
	} else {
		review.Object = widget(t, newer)
	}
	return review
}

func widget(t testing.TB, spec string) runtime.RawExtension {
	t.Helper()
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &object); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "example.org/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "namespace": "ns", "uid": "u"}, "spec": object})
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: raw}
}

func violationsOf(t testing.TB, compiled *Compiled, review *admissionv1.AdmissionRequest) []string {
	t.Helper()
	request, err := NewRequest(review)
	if err != nil {
		t.Fatal(err)
	}
	violations, err := compiled.Evaluate(t.Context(), request, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range violations {
		all = append(all, v.String())
	}
	return all
}

func TestEvaluate_FieldModes(t *testing.T) {
	const assigned, unset = "spec.a: " + messageAssigned, "spec.a: " + messageUnset
	changed := []string{"spec.a: " + messageChanged}
	tests := []struct {
		name       string
		rule       admissionv1alpha1.FieldRule
		compare    *admissionv1alpha1.Comparison
		old, newer string
		want       []string
	}{
		{"Immutable lets what is the same pass", inMode("Immutable"), nil, "{a: x}", "{a: x}", nil},
		{"Immutable refuses another value", inMode("Immutable"), nil, "{a: x}", "{a: y}", changed},
		{"Immutable refuses to set", inMode("Immutable"), nil, "{b: 1}", "{a: y}", []string{assigned}},
		{"Immutable refuses to unset", inMode("Immutable"), nil, "{a: x}", "{b: 1}", []string{unset}},
		{"Immutable takes an empty text for none", inMode("Immutable"), nil, "{a: ''}", "{b: 1}", nil},
		{"Immutable takes an empty list for none", inMode("Immutable"), nil, "{b: 1}", "{a: []}", nil},
		{"Immutable takes an empty map for none", inMode("Immutable"), nil, "{a: {}}", "{b: 1}", nil},
		{"Immutable takes null for none", inMode("Immutable"), nil, "{a: null}", "{b: 1}", nil},
		{"Immutable takes an empty list for an empty text", inMode("Immutable"), nil, "{a: []}", "{a: ''}", nil},
		{"Immutable knows empty from unset if asked", inMode("Immutable"), &admissionv1alpha1.Comparison{EmptyEqualsUnset: ptr.To(false)}, "{a: []}", "{b: 1}", []string{unset}},
		{"Immutable takes null for none if asked for that too", inMode("Immutable"), &admissionv1alpha1.Comparison{EmptyEqualsUnset: ptr.To(false)}, "{a: null}", "{b: 1}", nil},
		{"Immutable holds false for a value", inMode("Immutable"), nil, "{a: false}", "{b: 1}", []string{unset}},
		{"Immutable holds 0 for a value", inMode("Immutable"), nil, "{b: 1}", "{a: 0}", []string{assigned}},
		{"Immutable compares what is below", inMode("Immutable"), nil, "{a: {x: [1, {y: 2}]}}", "{a: {x: [1, {y: 3}]}}", changed},
		{"Immutable looks at types", inMode("Immutable"), nil, "{a: '1'}", "{a: 1}", changed},
		{"Immutable minds the order of a list", inMode("Immutable"), nil, "{a: [1, 2]}", "{a: [2, 1]}", changed},
		{"a field below something that is no map is unset", pathMode("spec.a.b", "Immutable"), nil, "{a: x}", "{a: y}", nil},
		{"a field that cannot be written with a dot", pathMode("spec.a-b.namespace", "Immutable"), nil, "{a-b: {namespace: x}}", "{a-b: {namespace: y}}", []string{"spec.a-b.namespace: " + messageChanged}},
		{"a message of one's own", withMessage("no"), nil, "{a: x}", "{a: y}", []string{"spec.a: no"}},

		{"OnceSet lets set", inMode("OnceSet"), nil, "{b: 1}", "{a: y}", nil},
		{"OnceSet lets fill what was empty", inMode("OnceSet"), nil, "{a: ''}", "{a: y}", nil},
		{"OnceSet refuses to change", inMode("OnceSet"), nil, "{a: x}", "{a: y}", changed},
		{"OnceSet refuses to unset", inMode("OnceSet"), nil, "{a: x}", "{b: 1}", []string{unset}},
		{"OnceSet holds false for a value", inMode("OnceSet"), nil, "{a: false}", "{a: true}", changed},

		{"CannotUnset lets change", inMode("CannotUnset"), nil, "{a: x}", "{a: y}", nil},
		{"CannotUnset refuses to unset", inMode("CannotUnset"), nil, "{a: x}", "{b: 1}", []string{"spec.a: field cannot be unset"}},
		{"CannotUnset refuses to empty", inMode("CannotUnset"), nil, "{a: {x: 1}}", "{a: {}}", []string{"spec.a: field cannot be unset"}},
		{"CannotUnset lets false be", inMode("CannotUnset"), nil, "{a: true}", "{a: false}", nil},

		{"NoFalse lets switch on", inMode("NoFalse"), nil, "{a: false}", "{a: true}", nil},
		{"NoFalse refuses to switch off", inMode("NoFalse"), nil, "{a: true}", "{a: false}", []string{"spec.a: field cannot be set to false"}},
		{"NoFalse refuses to unset", inMode("NoFalse"), nil, "{a: true}", "{b: 1}", []string{"spec.a: field cannot be set to false"}},
		{"NoFalse takes no text for true", inMode("NoFalse"), nil, "{a: true}", "{a: 'true'}", []string{"spec.a: field cannot be set to false"}},

		{"NoDowngrade lets upgrade", inMode("NoDowngrade"), nil, "{a: v1.9.0}", "{a: v1.10.0}", nil},
		{"NoDowngrade refuses a lower version", inMode("NoDowngrade"), nil, "{a: v1.10.0}", "{a: v1.9.9}", []string{"spec.a: field version cannot be downgraded"}},
		{"NoDowngrade knows what comes before a release", inMode("NoDowngrade"), nil, "{a: v1.10.0}", "{a: v1.10.0-rc.1}", []string{"spec.a: field version cannot be downgraded"}},
		{"NoDowngrade takes a version with and without v", inMode("NoDowngrade"), nil, "{a: v1.9.0}", "{a: 1.9.1}", nil},
		{"NoDowngrade refuses what is no version", inMode("NoDowngrade"), nil, "{a: v1.9.0}", "{a: latest}", []string{"spec.a: field version cannot be downgraded"}},
		{"NoDowngrade refuses to unset", inMode("NoDowngrade"), nil, "{a: v1.9.0}", "{b: 1}", []string{"spec.a: field version cannot be downgraded"}},
		{"NoDowngrade lets set", inMode("NoDowngrade"), nil, "{b: 1}", "{a: v1.9.0}", nil},
		{"NoDowngrade lets leave what was no version", inMode("NoDowngrade"), nil, "{a: latest}", "{a: v1.9.0}", nil},

		{"KeepItems lets add and change", pathMode("spec.a[name]", "KeepItems"), nil, "{a: [{name: x, v: 1}]}", "{a: [{name: y}, {name: x, v: 2}]}", nil},
		{"KeepItems refuses to remove", pathMode("spec.a[name]", "KeepItems"), nil, "{a: [{name: x}, {name: y}]}", "{a: [{name: y}]}", []string{"spec.a[name]: items cannot be removed"}},
		{"KeepItems refuses to unset", pathMode("spec.a[name]", "KeepItems"), nil, "{a: [{name: x}]}", "{b: 1}", []string{"spec.a[name]: items cannot be removed"}},
		{"KeepItems below items", pathMode("spec.a[name].b[id]", "KeepItems"), nil, "{a: [{name: x, b: [{id: 1}]}]}", "{a: [{name: x, b: []}]}", []string{"spec.a[name].b[id]: items cannot be removed"}},

		{"SetEqual lets reorder", inMode("SetEqual"), nil, "{a: [1, 2, 2]}", "{a: [2, 1, 2]}", nil},
		{"SetEqual counts", inMode("SetEqual"), nil, "{a: [1, 2, 2]}", "{a: [1, 1, 2]}", changed},
		{"SetEqual refuses to add", inMode("SetEqual"), nil, "{a: [1]}", "{a: [1, 2]}", changed},
		{"SetEqual takes an empty list for none", inMode("SetEqual"), nil, "{a: []}", "{b: 1}", nil},

		{"items are compared by their key", pathMode("spec.a[name].v", "Immutable"), nil, "{a: [{name: x, v: 1}, {name: y, v: 2}]}", "{a: [{name: y, v: 2}, {name: x, v: 1}]}", nil},
		{"Immutable rejects a change of an item", pathMode("spec.a[name].v", "Immutable"), nil, "{a: [{name: x, v: 1}, {name: y, v: 2}]}", "{a: [{name: y, v: 3}, {name: x, v: 1}]}", []string{"spec.a[name].v: " + messageChanged}},
		{"an item may come and go", pathMode("spec.a[name].v", "Immutable"), nil, "{a: [{name: x, v: 1}]}", "{a: [{name: y, v: 2}]}", nil},
		{"items of items", pathMode("spec.a[n].b[m].v", "OnceSet"), nil, "{a: [{n: 1, b: [{m: 1, v: 1}]}]}", "{a: [{n: 1, b: [{m: 1, v: 2}]}]}", []string{"spec.a[n].b[m].v: " + messageChanged}},

		{"an exception may change", except("x"), nil, "{a: {x: 1, y: 2}}", "{a: {x: 2, y: 2}}", nil},
		{"rejects a change of a field that is not an exception", except("x"), nil, "{a: {x: 1, y: 2}}", "{a: {x: 1, y: 3}}", changed},
		{"rejects an added field that is not an exception", except("x"), nil, "{a: {x: 1}}", "{a: {x: 1, y: 3}}", changed},
		{"all but the exception may be empty or unset", except("x"), nil, "{a: {x: 1}}", "{b: 1}", nil},
		{"an exception further down", except("s.e", "t"), nil, "{a: {s: {e: 1, f: 1}, t: 1}}", "{a: {s: {e: 2, f: 1}}}", nil},
		{"beside an exception further down", except("s.e", "t"), nil, "{a: {s: {e: 1, f: 1}}}", "{a: {s: {e: 1, f: 2}}}", changed},
		{"an exception in items", except("l[n].e"), nil, "{a: {l: [{n: 1, e: 1}]}}", "{a: {l: [{n: 1, e: 2}]}}", nil},
		{"beside an exception in items", except("l[n].e"), nil, "{a: {l: [{n: 1, e: 1, f: 1}]}}", "{a: {l: [{n: 1, e: 1, f: 2}]}}", changed},
		{"no item with an exception may go", except("l[n].e"), nil, "{a: {l: [{n: 1}]}}", "{a: {l: []}}", changed},

		{"a rule under a condition that holds", when("oldObject.spec.open"), nil, "{a: x, open: true}", "{a: y}", changed},
		{"a rule under a condition that does not", when("oldObject.spec.open"), nil, "{a: x, open: false}", "{a: y}", nil},

		{"an older object that lacks the default", inMode("Immutable"), defaultOld("oldObject.metadata.name"), "{b: 1}", "{a: w}", nil},
		{"a newer object that lacks the default", inMode("Immutable"), defaultOld("oldObject.metadata.name"), "{a: w}", "{b: 1}", nil},
		{"both lack the default", inMode("Immutable"), defaultOld("oldObject.metadata.name"), "{b: 1}", "{b: 2}", nil},
		{"another value than the default", inMode("Immutable"), defaultOld("oldObject.metadata.name"), "{b: 1}", "{a: other}", []string{assigned}},

		{"a creation", inMode("Immutable"), nil, "", "{a: y}", nil},
		{"a deletion", inMode("Immutable"), nil, "{a: y}", "", nil},
	}
	compiler := newCompiler(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			compiled := compile(t, compiler, policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
				Fields: []admissionv1alpha1.FieldRule{tt.rule}, Compare: tt.compare,
			}))
			if diff := cmp.Diff(tt.want, violationsOf(t, compiled, reviewOf(t, tt.old, tt.newer))); diff != "" {
				t.Errorf("violations differ (-want +got):\n%s\n%s", diff, compiled.rules[0].expression)
			}
		})
	}
}

func inMode(mode admissionv1alpha1.FieldMode) admissionv1alpha1.FieldRule {
	return pathMode("spec.a", mode)
}

func pathMode(path admissionv1alpha1.FieldPath, mode admissionv1alpha1.FieldMode) admissionv1alpha1.FieldRule {
	return admissionv1alpha1.FieldRule{Path: path, Mode: mode}
}

func withMessage(message string) admissionv1alpha1.FieldRule {
	rule := inMode("Immutable")
	rule.Message = message
	return rule
}

func except(paths ...admissionv1alpha1.FieldPath) admissionv1alpha1.FieldRule {
	rule := inMode("Immutable")
	rule.ExceptPaths = paths
	return rule
}

func when(expression string) admissionv1alpha1.FieldRule {
	rule := inMode("Immutable")
	rule.When = expression
	return rule
}

func defaultOld(expression string) *admissionv1alpha1.Comparison {
	return &admissionv1alpha1.Comparison{DefaultOld: []admissionv1alpha1.DefaultOld{{Path: "spec.a", Expression: expression}}}
}

func TestEvaluate_ReturnsAllViolations(t *testing.T) {
	compiled := compile(t, newCompiler(t), policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Fields: []admissionv1alpha1.FieldRule{pathMode("spec.a", "Immutable"), pathMode("spec.b", "CannotUnset")},
		Validations: []admissionv1alpha1.Validation{
			{Path: "spec.c", Expression: "object.spec.c < 5", Message: "too large", MessageExpression: "'too large: ' + string(object.spec.c)"},
			{Expression: "object.spec.c > 5"},
			{Expression: "object.spec.c > 9", Message: "fixed", MessageExpression: "string(object.spec.nothing)"},
		},
	}))
	got := violationsOf(t, compiled, reviewOf(t, "{a: 1, b: 1, c: 1}", "{a: 2, c: 7}"))
	want := []string{"spec.a: " + messageChanged, "spec.b: field cannot be unset", "spec.c: too large: 7", "spec: fixed"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violations differ (-want +got):\n%s", diff)
	}
}

func TestEvaluate_FailingRuleDoesNotAffectOthers(t *testing.T) {
	compiled := compile(t, newCompiler(t), policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Fields:      []admissionv1alpha1.FieldRule{pathMode("spec.a", "Immutable")},
		Validations: []admissionv1alpha1.Validation{{Expression: "object.spec.missing.field == 1"}},
	}))
	request, err := NewRequest(reviewOf(t, "{a: 1}", "{a: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	violations, err := compiled.Evaluate(t.Context(), request, nil, nil)
	if diff := cmp.Diff([]Violation{{Path: "spec.a", Message: messageChanged}}, violations); diff != "" {
		t.Errorf("violations differ (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "spec.validations[0]") {
		t.Errorf("got error %v, want one that names spec.validations[0]", err)
	}
}

func TestEvaluate_StopsExpensiveExpression(t *testing.T) {
	compiled := compile(t, newCompiler(t), policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Validations: []admissionv1alpha1.Validation{{Expression: "object.spec.l.all(a, object.spec.l.all(b, object.spec.l.all(c, a + b + c > 0)))"}},
	}))
	request, err := NewRequest(reviewOf(t, "{a: 1}", "{l: ["+strings.Repeat("1, ", 999)+"1]}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compiled.Evaluate(t.Context(), request, nil, nil); err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("got error %v, want one about cost", err)
	}
}

// The object's author chooses the quantity, while the policy's may be an administrator.
func TestEvaluate_DoesNotComputeQuantityOfABillionDigits(t *testing.T) {
	compiled := compile(t, newCompiler(t), policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Validations: []admissionv1alpha1.Validation{{Expression: "quantity(object.spec.size).isLessThan(quantity('1Gi'))", Message: "too large"}},
	}))
	request, err := NewRequest(reviewOf(t, "{a: 1}", "{size: '1e-99999999'}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compiled.Evaluate(t.Context(), request, nil, nil); err == nil || !strings.Contains(err.Error(), "digits in its exponent") {
		t.Errorf("got error %v, want one about the exponent", err)
	}
	if got := violationsOf(t, compiled, reviewOf(t, "{a: 1}", "{size: 2Gi}")); len(got) != 1 || !strings.Contains(got[0], "too large") {
		t.Errorf("got %v of 2Gi, want that it is too large", got)
	}
}

func TestEvaluate_SkipsRulesWithoutTheirLookup(t *testing.T) {
	compiled := compile(t, newCompiler(t), policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Lookups: []admissionv1alpha1.Lookup{{Name: "other", Get: &admissionv1alpha1.ObjectGet{APIVersion: "v1", Kind: "ConfigMap", NameFrom: "'x'"}}},
		Validations: []admissionv1alpha1.Validation{
			{Expression: "params.lookups.other.data.size == 'small'", Message: "needs it"},
			{Expression: "has(params.lookups.other)", Message: "asks for it"},
			{Expression: "params.lookups.?other.?data.?size.orValue('') == 'small'", Message: "does without"},
		},
	}))
	request, err := NewRequest(reviewOf(t, "", "{a: 1}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		found map[string]any
		want  []string
	}{
		"nothing found": {map[string]any{}, []string{"asks for it", "does without"}},
		"found, wrong":  {map[string]any{"other": map[string]any{"data": map[string]any{"size": "big"}}}, []string{"needs it", "does without"}},
		"found, right":  {map[string]any{"other": map[string]any{"data": map[string]any{"size": "small"}}}, nil},
	} {
		violations, err := compiled.Evaluate(t.Context(), request, tt.found, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range violations {
			got = append(got, v.Message)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: messages differ (-want +got):\n%s", name, diff)
		}
	}
}
