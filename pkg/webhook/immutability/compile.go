// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	usercel "fleetgate.io/fleetgate/pkg/kube/boundedcel"
)

// Compiled is a policy that can be evaluated. It is safe for concurrent use.
type Compiled struct {
	policy *admissionv1alpha1.ImmutabilityPolicy
	rules  []rule
	// conditions has a program for each rule, messages an evaluator or nil.
	conditions []plugincel.CompilationResult
	messages   []plugincel.ConditionEvaluator
	// needs are the lookups that a rule cannot do without, by rule.
	needs   []map[string]bool
	lookups []compiledLookup
	guards  []compiledGuard
	// readsNamespace is true if an expression may ask for namespaceObject.
	readsNamespace bool
}

// Policy is what was compiled. It must not be changed.
func (c *Compiled) Policy() *admissionv1alpha1.ImmutabilityPolicy { return c.policy }

// Compiler compiles policies. Making one takes a while, compiling with it does not.
type Compiler struct {
	inner plugincel.Compiler
	// parser tells which lookups an expression reads.
	parser *cel.Env
	costs  *estimator
}

// NewCompiler returns a compiler with the environment and the cost limits that
// the API server has for ValidatingAdmissionPolicies.
func NewCompiler() (*Compiler, error) {
	parser, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // As old as anything.
		ProgramOptions:    []cel.ProgramOption{usercel.BoundedQuantities()},
	})
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	costs, err := newEstimator(base)
	if err != nil {
		return nil, err
	}
	return &Compiler{inner: plugincel.NewCompiler(base), parser: parser, costs: costs}, nil
}

// Compile returns the policy ready to evaluate. The error names every field of the
// policy that is wrong. New says that somebody is writing the policy now; what is
// stored already may use all that any version of the gateway accepted.
func (c *Compiler) Compile(policy *admissionv1alpha1.ImmutabilityPolicy, isNew bool) (*Compiled, field.ErrorList) {
	policy = policy.DeepCopy()
	spec := &policy.Spec
	build := &build{
		compiler: c,
		mode:     environment.StoredExpressions,
		options:  plugincel.OptionalVariableDeclarations{HasParams: len(spec.Lookups) > 0},
	}
	if isNew {
		build.mode = environment.NewExpressions
	}
	paths := validatePaths(spec)
	build.problems = append(validateMatch(&spec.Match), paths...)
	compiled := &Compiled{policy: policy, rules: rulesOf(spec)}
	build.matchConditions(spec)
	if len(paths) == 0 {
		build.rules(compiled)
	}
	build.lookups(compiled)
	build.guards(compiled)
	compiled.readsNamespace = build.readsNamespace
	return compiled, build.problems
}

// A build gathers what is wrong with a policy while it is compiled.
type build struct {
	compiler       *Compiler
	mode           environment.Type
	options        plugincel.OptionalVariableDeclarations
	problems       field.ErrorList
	readsNamespace bool
}

// An expression is CEL for the API server's compiler.
type expression struct {
	text string
	// returns is AnyType for what is only known at run time.
	returns *cel.Type
}

// GetExpression is for the compiler.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes is for the compiler.
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.returns} }

func (b *build) compile(source *field.Path, text string, returns *cel.Type) plugincel.CompilationResult {
	return b.compileWith(source, text, returns, b.options)
}

func (b *build) compileWith(source *field.Path, text string, returns *cel.Type, options plugincel.OptionalVariableDeclarations) plugincel.CompilationResult {
	result := b.compiler.inner.CompileCELExpression(expression{text, returns}, options, b.mode)
	if result.Error != nil {
		b.problems = append(b.problems, field.Invalid(source, text, result.Error.Detail))
	} else if b.mode == environment.NewExpressions {
		b.estimate(source, text)
	}
	b.readsNamespace = b.readsNamespace || b.compiler.mentions(text, plugincel.NamespaceVarName)
	return result
}

// estimate refuses what would never be evaluated to its end. A stored policy is not
// asked again: the estimates of another version of Kubernetes may be higher.
func (b *build) estimate(source *field.Path, text string) {
	if cost, tooMuch := b.compiler.costs.tooMuch(text); tooMuch {
		b.problems = append(b.problems, field.Forbidden(source, fmt.Sprintf("costs up to %d already for an object whose lists have %d items, and %d is the limit: nest fewer loops",
			cost, ordinarySize, celconfig.PerCallLimit)))
	}
}

// matchConditions are evaluated by the hub's API server, which tells of errors in
// them for all webhooks together; so they are tried here.
func (b *build) matchConditions(spec *admissionv1alpha1.ImmutabilityPolicySpec) {
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for i, condition := range spec.Match.MatchConditions {
		b.compileWith(field.NewPath("spec", "match", "matchConditions").Index(i).Child("expression"), condition.Expression, cel.BoolType, options)
	}
}

func (b *build) rules(compiled *Compiled) {
	for _, r := range compiled.rules {
		if r.when != "" && b.compile(r.source.Child("when"), r.when, cel.AnyType).Error != nil {
			continue // What it is part of would only tell the same, in longer words.
		}
		compiled.conditions = append(compiled.conditions, b.compile(r.source, r.expression, cel.BoolType))
		var message plugincel.ConditionEvaluator
		if r.messageExpression != "" {
			message = plugincel.NewCondition([]plugincel.CompilationResult{b.compile(r.source.Child("messageExpression"), r.messageExpression, cel.StringType)})
		}
		compiled.messages = append(compiled.messages, message)
		compiled.needs = append(compiled.needs, b.compiler.needs(r.expression))
	}
}

// optional compiles an expression that may be left out; nil means that it was.
func (b *build) optional(source *field.Path, text string, returns *cel.Type) plugincel.ConditionEvaluator {
	if text == "" {
		return nil
	}
	return plugincel.NewCondition([]plugincel.CompilationResult{b.compile(source, text, returns)})
}

// joined is what is wrong with a policy, for a condition's message.
func joined(problems field.ErrorList) string {
	var all []error
	for _, p := range problems {
		all = append(all, p)
	}
	return errors.Join(all...).Error()
}
