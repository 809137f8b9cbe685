// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"context"
	"errors"
	"fmt"
	"strings"

	celtypes "github.com/google/cel-go/common/types"
	corev1 "k8s.io/api/core/v1"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// A Violation is one rule that a request breaks.
type Violation struct {
	// Path is the field of the object.
	Path string
	// Message is the policy's text.
	Message string
}

// String is the field and the message.
func (v Violation) String() string { return v.Path + ": " + v.Message }

// Evaluate returns all violations of fields and validations, in the order of the policy. The error
// says which rules could not be evaluated; the violations of the others are returned nevertheless.
// For a policy with lookups, found holds the objects that they found, by name. The namespace may be
// nil.
func (c *Compiled) Evaluate(ctx context.Context, request *Request, found map[string]any, namespace *corev1.Namespace) ([]Violation, error) {
	around := surroundings{namespace: plugincel.CreateNamespaceObject(namespace), params: c.params(found)}
	asked := c.applicableRules(request, found)
	conditions := make([]plugincel.CompilationResult, 0, len(asked))
	for _, rule := range asked {
		conditions = append(conditions, c.conditions[rule])
	}
	results, _, err := forInput(ctx, plugincel.NewCondition(conditions), request, around, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", c.policy.Name, err)
	}
	var violations []Violation
	var failures []error
	for i, result := range results {
		rule := asked[i]
		if result.Error != nil {
			failures = append(failures, fmt.Errorf("policy %s, %s: %w", c.policy.Name, c.rules[rule].source, result.Error))
			continue
		}
		if result.EvalResult != celtypes.True {
			violations = append(violations, Violation{Path: c.rules[rule].path, Message: c.message(ctx, rule, request, around)})
		}
	}
	return violations, errors.Join(failures...)
}

// applicableRules are the rules to evaluate. It leaves out rules of unchanged fields, and rules that need a
// lookup which found nothing.
func (c *Compiled) applicableRules(request *Request, found map[string]any) []int {
	asked := make([]int, 0, len(c.rules))
	for rule := range c.rules {
		if !c.rules[rule].kept(request) && !c.skips(rule, found) {
			asked = append(asked, rule)
		}
	}
	return asked
}

// skips is true for a rule that needs a lookup which found nothing.
func (c *Compiled) skips(rule int, found map[string]any) bool {
	for name := range c.needs[rule] {
		if _, ok := found[name]; !ok {
			return true
		}
	}
	return false
}

// message is the text for the caller: the result of its expression, or the fixed text if that
// fails.
func (c *Compiled) message(ctx context.Context, rule int, request *Request, around surroundings) string {
	fixed := c.rules[rule].message
	if c.messages[rule] == nil {
		return fixed
	}
	results, _, err := forInput(ctx, c.messages[rule], request, around, celconfig.PerCallLimit)
	if err != nil || results[0].Error != nil {
		return fixed
	}
	text, ok := results[0].EvalResult.Value().(string)
	text = strings.TrimSpace(text)
	if !ok || text == "" || len(text) > celconfig.MaxEvaluatedMessageExpressionSizeBytes || strings.Contains(text, "\n") {
		return fixed
	}
	return text
}

func forInput(ctx context.Context, evaluator plugincel.ConditionEvaluator, request *Request, around surroundings, budget int64) ([]plugincel.EvaluationResult, int64, error) {
	bindings := plugincel.OptionalVariableBindings{VersionedParams: around.params}
	return evaluator.ForInput(ctx, request.attributes, request.review, bindings, around.namespace, budget)
}

// one evaluates a single expression.
func one(ctx context.Context, evaluator plugincel.ConditionEvaluator, request *Request, around surroundings) (any, error) {
	results, _, err := forInput(ctx, evaluator, request, around, celconfig.PerCallLimit)
	if err != nil {
		return nil, err
	}
	if results[0].Error != nil {
		return nil, results[0].Error
	}
	return results[0].EvalResult.Value(), nil
}
