// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/kube/boundedcel"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// HealthAnnotations are the names of annotations of a manifest with CEL expressions about the health
// of its object. The zero value means that there are none.
type HealthAnnotations struct{ InProgress, Failed, Current string }

// AreOn reports whether a manifest has any of the annotations.
func (a HealthAnnotations) AreOn(wanted *unstructured.Unstructured) bool {
	annotations := wanted.GetAnnotations()
	return annotations[a.InProgress] != "" || annotations[a.Failed] != "" || annotations[a.Current] != ""
}

// Evaluator evaluates objects, also by the expressions of their manifests. It is safe for concurrent
// use.
type Evaluator struct{ compiler *boundedcel.Compiler }

// NewEvaluator returns an Evaluator.
func NewEvaluator() (*Evaluator, error) {
	var fields []cel.EnvOption
	for _, name := range fieldNames() {
		fields = append(fields, cel.Variable(name, cel.DynType))
	}
	compiler, err := boundedcel.NewCompiler(fields...)
	if err != nil {
		return nil, fmt.Errorf("setting up health expressions: %w", err)
	}
	return &Evaluator{compiler}, nil
}

// fieldNames are the fields of an object that are variables of an expression, as in Flux.
func fieldNames() []string {
	return []string{"apiVersion", "kind", "metadata", "spec", "status", "data"}
}

// Of evaluates an object by the expressions of its manifest, in the order of Flux: in progress,
// failed, current. If no expression decides, the rule of the kind does.
func (e *Evaluator) Of(object, wanted *unstructured.Unstructured, names HealthAnnotations) Finding {
	if !names.AreOn(wanted) {
		return Of(object)
	}
	kind := object.GetKind()
	switch {
	case manifest.IsSecret(object.GroupVersionKind().GroupKind()):
		return Finding{HealthCheckInvalid, "Health expressions of a Secret are not evaluated, because their results could reveal its values"}
	case isBehind(object):
		return behind(object)
	}
	input, budget, annotations := variablesOf(object), uint64(boundedcel.CallCost), wanted.GetAnnotations()
	for _, check := range []struct {
		annotation string
		met        Finding
	}{
		{names.InProgress, Finding{NotYet, fmt.Sprintf("The %s is in progress: the expression of annotation %s holds", kind, names.InProgress)}},
		{names.Failed, Finding{Failed, fmt.Sprintf("The %s failed: the expression of annotation %s holds", kind, names.Failed)}},
		{names.Current, Finding{Available, fmt.Sprintf("The %s is healthy: the expression of annotation %s holds", kind, names.Current)}},
	} {
		text := annotations[check.annotation]
		if text == "" {
			continue
		}
		holds, unknown := e.evaluate(text, input, &budget)
		switch {
		case unknown != nil:
			unknown.Message = fmt.Sprintf("The health of the %s is unknown: annotation %s (%s): %s", kind, check.annotation, text, unknown.Message)
			return *unknown
		case holds:
			return check.met
		}
	}
	if annotations[names.Current] == "" {
		return Of(object)
	}
	return Finding{NotYet, fmt.Sprintf("The %s is not healthy yet: the expression of annotation %s does not hold", kind, names.Current)}
}

// evaluate evaluates one expression and subtracts its cost from the budget. If it has no result, the
// finding says why. An evaluation error is temporary: most expressions read fields that the
// controller of the object has not written yet.
func (e *Evaluator) evaluate(text string, input map[string]any, budget *uint64) (bool, *Finding) {
	program, err := e.compiler.Compile(text)
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n | ") // cuts off the expression
		return false, &Finding{HealthCheckInvalid, "the expression is invalid: " + reason}
	}
	value, err := program.Run(input, budget)
	holds, isBool := value.(bool)
	switch {
	case errors.Is(err, boundedcel.ErrTooExpensive):
		return false, &Finding{HealthCheckInvalid, "the expression is too expensive: " + boundedcel.ErrTooExpensive.Error()}
	case err != nil:
		return false, &Finding{NotYet, "the expression cannot be evaluated yet: " + err.Error()}
	case !isBool:
		return false, &Finding{HealthCheckInvalid, fmt.Sprintf("the expression is invalid: its result is %T instead of bool", value)}
	}
	return holds, nil
}

// variablesOf are the fields of an object. A missing one is an empty map, so that has() works on it.
func variablesOf(object *unstructured.Unstructured) map[string]any {
	input := map[string]any{}
	for _, name := range fieldNames() {
		input[name] = map[string]any{}
		if value, found := object.Object[name]; found {
			input[name] = value
		}
	}
	return input
}
