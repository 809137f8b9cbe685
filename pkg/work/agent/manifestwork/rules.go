// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/boundedcel"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// ruler evaluates condition rules on objects. It is safe for concurrent use.
type ruler struct {
	// rules has the variable object; messages also has result.
	rules, messages *boundedcel.Compiler
}

func newRuler() (*ruler, error) {
	rules, err := boundedcel.NewCompiler(
		cel.Variable("object", cel.DynType),
		cel.Function("hasConditions", cel.Overload("status_has_conditions", []*cel.Type{cel.DynType}, cel.BoolType, cel.UnaryBinding(hasConditions))),
	)
	if err != nil {
		return nil, fmt.Errorf("setting up condition rules: %w", err)
	}
	messages, err := rules.With(cel.Variable("result", cel.BoolType))
	if err != nil {
		return nil, fmt.Errorf("setting up condition rules: %w", err)
	}
	return &ruler{rules: rules, messages: messages}, nil
}

func hasConditions(status ref.Val) ref.Val {
	fields, ok := status.(traits.Mapper)
	if !ok {
		return types.False
	}
	list, found := fields.Find(types.String("conditions"))
	conditions, ok := list.(traits.Lister)
	return types.Bool(found && ok && conditions.Size() != types.IntZero)
}

// evaluate returns a condition for each rule that applies to the object, in order. Well-known rules
// apply to known kinds only.
func (r *ruler) evaluate(object *unstructured.Unstructured, rules []workv1.ConditionRule) []metav1.Condition {
	if len(rules) > 0 && manifest.IsSecret(object.GroupVersionKind().GroupKind()) {
		object = withoutSecrets(object) // messages could contain its values
	}
	var all []metav1.Condition
	budget := uint64(boundedcel.TotalCost)
	for _, rule := range rules {
		switch rule.Type {
		case workv1.ConditionCEL:
			all = append(all, r.condition(object, rule, &budget))
		case workv1.ConditionWellKnown:
			if known, is := wellKnownRule(object.GroupVersionKind(), rule); is {
				all = append(all, r.condition(object, known, &budget))
			}
		default:
			all = append(all, metav1.Condition{Type: rule.Condition, Status: metav1.ConditionUnknown, Reason: workv1.ReasonRuleInvalid,
				Message: fmt.Sprintf("unrecognized condition rule type %s", rule.Type)})
		}
	}
	return all
}

// wellKnownRule returns the well-known rule for a kind, with the messages of the requested rule.
func wellKnownRule(kind schema.GroupVersionKind, wellKnown workv1.ConditionRule) (workv1.ConditionRule, bool) {
	rule := workv1.ConditionRule{Type: workv1.ConditionCEL, Condition: wellKnown.Condition, Message: wellKnown.Message}
	switch {
	case wellKnown.Condition != workv1.ConditionComplete:
		return rule, false
	case kind == schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}:
		rule.CELExpressions = []string{
			"has(object.status) && hasConditions(object.status) && object.status.conditions.exists(c, c.type in ['Complete', 'Failed'] && c.status == 'True')"}
		rule.MessageExpression = "result ? 'Job is finished' : 'Job is not finished'"
	case kind == schema.GroupVersionKind{Version: "v1", Kind: "Pod"}:
		rule.CELExpressions = []string{"has(object.status) && has(object.status.phase) && object.status.phase in ['Succeeded', 'Failed']"}
		rule.MessageExpression = "'Pod is in phase ' + (has(object.status) && has(object.status.phase) ? object.status.phase : 'Unknown')"
	default:
		return rule, false
	}
	if wellKnown.MessageExpression != "" {
		rule.MessageExpression = wellKnown.MessageExpression
	}
	return rule, true
}

// condition evaluates one rule on an object.
func (r *ruler) condition(object *unstructured.Unstructured, rule workv1.ConditionRule, budget *uint64) metav1.Condition {
	c := metav1.Condition{Type: rule.Condition, Status: metav1.ConditionTrue, Reason: workv1.ReasonRuleEvaluated}
	for _, text := range rule.CELExpressions {
		value, err := run(r.rules, text, map[string]any{"object": object.Object}, budget)
		holds, isBool := value.(bool)
		if err == nil && !isBool {
			err = fmt.Errorf("expected bool result, got %T", value)
		}
		if err != nil {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, workv1.ReasonRuleExpressionError, engine.Shorten(err.Error())
			return c
		}
		if !holds {
			c.Status = metav1.ConditionFalse
			break
		}
	}
	c.Message = engine.Shorten(r.message(object, rule, c.Status == metav1.ConditionTrue, budget))
	return c
}

// message returns the message of a condition, or the error of its expression.
func (r *ruler) message(object *unstructured.Unstructured, rule workv1.ConditionRule, result bool, budget *uint64) string {
	if rule.MessageExpression != "" {
		value, err := run(r.messages, rule.MessageExpression, map[string]any{"object": object.Object, "result": result}, budget)
		text, isText := value.(string)
		switch {
		case err != nil:
			text, _, _ = strings.Cut(err.Error(), "\n | ") // cuts off the expression
			return text
		case !isText:
			return fmt.Sprintf("expected message expression to have a string result, got %T", value)
		case text != "":
			return text
		}
	}
	switch {
	case rule.Message != "":
		return rule.Message
	case result:
		return "Manifest is " + rule.Condition
	}
	return "Manifest is not " + rule.Condition
}

// run evaluates one expression and subtracts its cost from the budget.
func run(compiler *boundedcel.Compiler, text string, input map[string]any, budget *uint64) (any, error) {
	program, err := compiler.Compile(text)
	if err != nil {
		return nil, err
	}
	return program.Run(input, budget)
}

// byRule reports whether a condition is the result of a rule.
func byRule(c metav1.Condition) bool { return strings.HasPrefix(c.Reason, "ConditionRule") }

// aggregated derives the conditions of the work from rule conditions of its manifests, sorted by
// type.
func aggregated(manifests []workv1.ManifestCondition) []metav1.Condition {
	found := map[string][]metav1.Condition{}
	var kinds []string
	for _, m := range manifests {
		for _, c := range m.Conditions {
			if !byRule(c) {
				continue
			}
			if found[c.Type] == nil {
				kinds = append(kinds, c.Type)
			}
			found[c.Type] = append(found[c.Type], c)
		}
	}
	slices.Sort(kinds)
	all := make([]metav1.Condition, 0, len(kinds))
	for _, kind := range kinds {
		of := found[kind]
		message := of[0].Message
		if len(of) > 1 || message == "" {
			message = fmt.Sprintf("Aggregated from %d manifest conditions", len(of))
		}
		all = append(all, metav1.Condition{Type: kind, Status: together(kind, of), Reason: workv1.ReasonRulesAggregated, Message: message})
	}
	return all
}

// together aggregates conditions of one type: False before Unknown before True. Progressing is the
// exception: the work is Progressing if any manifest is.
func together(kind string, conditions []metav1.Condition) metav1.ConditionStatus {
	order := []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown, metav1.ConditionTrue}
	if kind == workv1.ConditionProgressing {
		slices.Reverse(order)
	}
	for _, status := range order {
		if slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Status == status }) {
			return status
		}
	}
	return metav1.ConditionUnknown
}
