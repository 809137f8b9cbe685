// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
)

// TestSizesOfWhatMembersWrite evaluates the expressions as the API server does, with
// nothing in an object but what it must have.
func TestSizesOfWhatMembersWrite(t *testing.T) {
	much := strings.Repeat("n", 250<<10)
	type object = map[string]any
	metadata := func(more object) object {
		if more["name"] == nil {
			more["name"] = "agent.3f"
		}
		return object{"metadata": more}
	}
	with := func(o object, key string, value any) object { o[key] = value; return o }
	conditions := []any{}
	for range 2 {
		conditions = append(conditions, object{"type": "T", "reason": "R", "message": much})
	}
	tests := map[string]struct {
		resource string
		object   object
		refused  bool
	}{
		"an event":                          {"events", with(metadata(object{"labels": object{"a": "b"}}), "note", "n"), false},
		"an event with nothing":             {"events", metadata(object{}), false},
		"an event of another name":          {"events", metadata(object{"name": "work.3f"}), true},
		"an event of a longer name":         {"events", metadata(object{"name": "agent.3f0"}), true},
		"a Secret of another name":          {"secrets", metadata(object{"name": "token"}), false},
		"an event about much":               {"events", with(metadata(object{}), "regarding", object{"fieldPath": much}), true},
		"an event with an annotation":       {"events", metadata(object{"annotations": object{"a": much}}), true},
		"an event with many finalizers":     {"events", metadata(object{"finalizers": []any{much}}), true},
		"a Secret":                          {"secrets", metadata(object{"labels": object{"a": "b"}}), false},
		"a Secret with large owners":        {"secrets", metadata(object{"ownerReferences": []any{object{"apiVersion": "v1", "kind": "K", "name": much, "uid": "u"}}}), true},
		"a report":                          {"internalmemberclusters", with(metadata(object{}), "status", object{"properties": object{"a": object{"value": "1"}}}), false},
		"a report with nothing":             {"internalmemberclusters", metadata(object{}), false},
		"a report with large properties":    {"internalmemberclusters", with(metadata(object{}), "status", object{"properties": object{"a": object{"value": much}, "b": object{"value": much}}}), true},
		"a report with large conditions":    {"internalmemberclusters", with(metadata(object{}), "status", object{"agentStatus": []any{object{"conditions": conditions}}}), true},
		"an account's status":               {"managedserviceaccounts", with(metadata(object{}), "status", object{"conditions": []any{object{"message": "m"}}}), false},
		"an account's status that is large": {"managedserviceaccounts", with(metadata(object{}), "status", object{"conditions": conditions}), true},
	}
	policy := MemberBounds()[0].(*admissionregistrationv1.ValidatingAdmissionPolicy)
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable("object", cel.DynType), cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			variables := object{}
			known := object{"object": tc.object, "request": object{"operation": "CREATE", "resource": object{"resource": tc.resource}}, "variables": variables}
			evaluate := func(expression string) any {
				t.Helper()
				compiled, issues := set.NewExpressionsEnv().Compile(expression)
				if issues.Err() != nil {
					t.Fatal(issues.Err())
				}
				program, err := set.NewExpressionsEnv().Program(compiled)
				if err != nil {
					t.Fatal(err)
				}
				value, _, err := program.Eval(known)
				if err != nil {
					t.Fatalf("%s: %v", expression, err)
				}
				return value.Value()
			}
			for _, variable := range policy.Spec.Variables {
				variables[variable.Name] = evaluate(variable.Expression)
			}
			refused := false
			for _, rule := range policy.Spec.Validations {
				refused = refused || evaluate(rule.Expression) != true
				if rule.MessageExpression != "" {
					evaluate(rule.MessageExpression)
				}
			}
			if refused != tc.refused {
				t.Errorf("refused: %v, want %v (%v)", refused, tc.refused, variables)
			}
		})
	}
}
