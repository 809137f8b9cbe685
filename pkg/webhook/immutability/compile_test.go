// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

func TestCompile_NamesEveryInvalidField(t *testing.T) {
	policy := policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Fields: []admissionv1alpha1.FieldRule{
			{Path: "spec.a", Mode: "Immutable", When: "1 +"},
		},
		Validations: []admissionv1alpha1.Validation{{Expression: "nothing"}, {Expression: "object.spec.x"}, {Expression: "true", MessageExpression: "1"}},
		Lookups:     []admissionv1alpha1.Lookup{{Name: "a", Get: &admissionv1alpha1.ObjectGet{APIVersion: "a/b/c", Kind: "K", NameFrom: "("}}, {Name: "b"}},
		Guards:      []admissionv1alpha1.Guard{{Name: "g", CountedWhen: "1", AllowWhen: []string{"authorizer.group('').check('x').allowed()"}}},
	})
	policy.Spec.Match = admissionv1alpha1.PolicyMatch{
		ResourceRules: []admissionregistrationv1.RuleWithOperations{
			rulesFor("*", "widgets", "CREATE"), rulesFor("example.org", "*", "CREATE"), rulesFor("example.org", "widgets/*", "CONNECT"),
			rulesFor("coordination.k8s.io", "leases", "CREATE"), rulesFor("", "namespaces", "DELETE"), rulesFor("", "configmaps", "CREATE"),
		},
		MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "a", Expression: "authorizer.path('/x').check('get').allowed()"}, {Name: "b", Expression: "1"}},
	}
	_, problems := newCompiler(t).Compile(policy, true)
	var got []string
	for _, p := range problems {
		got = append(got, p.Field)
	}
	want := []string{
		"spec.match.resourceRules[0].apiGroups[0]",
		"spec.match.resourceRules[1].resources[0]",
		"spec.match.resourceRules[2].resources[0]", "spec.match.resourceRules[2].operations[0]",
		"spec.match.resourceRules[3].apiGroups[0]",
		"spec.match.resourceRules[4].resources[0]",
		"spec.match.matchConditions[1].expression",
		"spec.fields[0].when", "spec.validations[0]", "spec.validations[1]", "spec.validations[2].messageExpression",
		"spec.lookups[0].get.nameFrom", "spec.lookups[0].get.apiVersion", "spec.lookups[1]",
		"spec.guards[0].countedWhen", "spec.guards[0].allowWhen[0]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields differ (-want +got):\n%s\n%v", diff, problems)
	}
}

func TestCompile_NamesContradictoryPaths(t *testing.T) {
	_, problems := newCompiler(t).Compile(policyOf(admissionv1alpha1.ImmutabilityPolicySpec{
		Compare: &admissionv1alpha1.Comparison{DefaultOld: []admissionv1alpha1.DefaultOld{{Path: "spec.z", Expression: "1"}}},
		Fields: []admissionv1alpha1.FieldRule{
			{Path: "spec.b", Mode: "KeepItems"},
			{Path: "spec.c", Mode: "OnceSet", ExceptPaths: []admissionv1alpha1.FieldPath{"d"}},
		},
	}), true)
	var got []string
	for _, p := range problems {
		got = append(got, p.Field)
	}
	want := []string{"spec.fields[0].path", "spec.fields[1].exceptPaths", "spec.compare.defaultOld[0].path"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields differ (-want +got):\n%s", diff)
	}
}

func rulesFor(group, resource string, operation admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
	}
}

func TestPolicies_CompileOncePerGeneration(t *testing.T) {
	policies := NewPolicies(newCompiler(t))
	policy := policyOf(admissionv1alpha1.ImmutabilityPolicySpec{Fields: []admissionv1alpha1.FieldRule{inMode("Immutable")}})
	first := policies.ensure(policy)
	if again := policies.ensure(policy); again.compiled != first.compiled {
		t.Error("the same generation was compiled again")
	}
	older := policy.DeepCopy()
	policy.Generation = 2
	second := policies.ensure(policy)
	if second.compiled == first.compiled {
		t.Error("a new generation was not compiled")
	}
	if late := policies.ensure(older); late.compiled != second.compiled {
		t.Error("an older generation took the place of a newer one")
	}
	policy.UID = "another"
	policy.Generation = 1
	if made := policies.ensure(policy); made.compiled == second.compiled {
		t.Error("a policy that was deleted and made again kept its old rules")
	}
	policies.remove(older)
	if _, known := policies.get("p"); !known {
		t.Error("the deletion of the older policy took the newer one away")
	}
	policies.remove(policy)
	if _, known := policies.get("p"); known {
		t.Error("a deleted policy is still served")
	}
}

func TestCompile_RefusesExpressionThatAlwaysExceedsTheCost(t *testing.T) {
	compiler := newCompiler(t)
	nested := func(depth int) *admissionv1alpha1.ImmutabilityPolicy {
		expression := "true"
		for i := range depth {
			expression = fmt.Sprintf("object.spec.l.all(i%d, %s)", i, expression)
		}
		return policyOf(admissionv1alpha1.ImmutabilityPolicySpec{Validations: []admissionv1alpha1.Validation{{Expression: expression}}})
	}
	_, problems := compiler.Compile(nested(8), true)
	if len(problems) != 1 || problems[0].Field != "spec.validations[0]" || !strings.Contains(problems[0].Detail, "nest fewer loops") {
		t.Errorf("eight loops: got %v, want one problem with spec.validations[0]", problems)
	}
	if _, problems := compiler.Compile(nested(4), true); len(problems) > 0 {
		t.Errorf("four loops: %v", problems)
	}
	if _, problems := compiler.Compile(nested(8), false); len(problems) > 0 {
		t.Errorf("eight loops, stored: %v", problems)
	}
}
