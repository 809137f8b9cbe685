// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"testing"

	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"
)

func TestExport_ResultCompiles(t *testing.T) {
	exported, _, err := Export(everyMode())
	if err != nil {
		t.Fatal(err)
	}
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	var accessors []plugincel.ExpressionAccessor
	for _, v := range exported.Spec.Validations {
		accessors = append(accessors, &validating.ValidationCondition{Expression: v.Expression})
	}
	for _, c := range exported.Spec.MatchConditions {
		accessors = append(accessors, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, accessor := range accessors {
		if result := compiler.CompileCELExpression(accessor, options, environment.NewExpressions); result.Error != nil {
			t.Errorf("%s: %v", accessor.GetExpression(), result.Error)
		}
	}
}
