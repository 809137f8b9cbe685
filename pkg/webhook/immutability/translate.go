// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// defaultPath is the reported field of a validation that names none.
const defaultPath = "spec"

// A rule is one condition in CEL: the translation of a field rule or a validation of a policy, here
// and in an exported policy.
type rule struct {
	// source is its place in the policy.
	source *field.Path
	// path is the field of the object that is reported to the caller.
	path string
	// expression must be true. when is the author's part of it, if there is one.
	expression, when string
	// field are the steps of the path for a rule about a field, nil for a validation.
	field []step
	// message is reported if the rule is violated. The result of messageExpression replaces it, if
	// there is one and it succeeds.
	message, messageExpression string
	// checked are expressions for a type checker that knows the schema.
	checked map[string]string
}

// rulesOf translates a policy's fields and validations.
func rulesOf(spec *admissionv1alpha1.ImmutabilityPolicySpec) []rule {
	compare := comparisonOf(spec)
	var rules []rule
	for i := range spec.Fields {
		f := &spec.Fields[i]
		source := field.NewPath("spec", "fields").Index(i)
		message, messageExpression := compare.message(f)
		checked := map[string]string{source.Child("path").String(): mention(f.Path)}
		if f.When != "" {
			checked[source.Child("when").String()] = f.When
		}
		for j, except := range f.ExceptPaths {
			checked[source.Child("exceptPaths").Index(j).String()] = mention(f.Path + "." + except)
		}
		rules = append(rules, rule{
			source: source, path: string(f.Path), field: stepsOf(f.Path), expression: compare.expression(f), when: f.When,
			message: message, messageExpression: messageExpression, checked: checked,
		})
	}
	for i, v := range spec.Validations {
		source := field.NewPath("spec", "validations").Index(i)
		path, message := string(v.Path), v.Message
		if path == "" {
			path = defaultPath
		}
		if message == "" {
			message = "failed expression: " + v.Expression
		}
		checked := map[string]string{source.Child("expression").String(): v.Expression}
		if v.MessageExpression != "" {
			checked[source.Child("messageExpression").String()] = v.MessageExpression
		}
		rules = append(rules, rule{
			source: source, path: path, expression: v.Expression,
			message: message, messageExpression: v.MessageExpression, checked: checked,
		})
	}
	return rules
}

// validatePaths finds what the schema cannot: paths that contradict each other.
func validatePaths(spec *admissionv1alpha1.ImmutabilityPolicySpec) field.ErrorList {
	var problems field.ErrorList
	immutable := map[admissionv1alpha1.FieldPath]bool{}
	for i, f := range spec.Fields {
		source := field.NewPath("spec", "fields").Index(i)
		steps := stepsOf(f.Path)
		if f.Mode == admissionv1alpha1.FieldModeKeepItems && steps[len(steps)-1].key == "" {
			problems = append(problems, field.Invalid(source.Child("path"), f.Path, "mode KeepItems needs the key of the items at the end, such as spec.addonProfiles[name]"))
		}
		if len(f.ExceptPaths) > 0 && f.Mode != admissionv1alpha1.FieldModeImmutable {
			problems = append(problems, field.Invalid(source.Child("exceptPaths"), f.ExceptPaths, "is allowed with mode Immutable only"))
		}
		immutable[f.Path] = immutable[f.Path] || f.Mode == admissionv1alpha1.FieldModeImmutable && len(f.ExceptPaths) == 0
	}
	if spec.Compare == nil {
		return problems
	}
	for i, d := range spec.Compare.DefaultOld {
		if !immutable[d.Path] {
			problems = append(problems, field.Invalid(field.NewPath("spec", "compare", "defaultOld").Index(i).Child("path"), d.Path,
				"is the path of no field in mode Immutable without exceptPaths"))
		}
	}
	return problems
}
