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
	// needs are the lookups that a rule requires, by rule.
	needs   []map[string]bool
	lookups []compiledLookup
	guards  []compiledGuard
	// readsNamespace is true if an expression may read namespaceObject.
	readsNamespace bool
}

// Policy is the compiled policy. It must not be changed.
func (c *Compiled) Policy() *admissionv1alpha1.ImmutabilityPolicy { return c.policy }

// Compiler compiles policies. Creating one is expensive, using it is not.
type Compiler struct {
	inner plugincel.Compiler
	// parser finds the lookups that an expression reads.
	parser *cel.Env
	costs  *estimator
}

// NewCompiler returns a compiler with the environment and the cost limits that the API server has
// for ValidatingAdmissionPolicies.
func NewCompiler() (*Compiler, error) {
	parser, err := cel.NewEnv(cel.OptionalTypes())
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // Enabled for every compatibility version.
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

// Compile returns the policy ready to evaluate. The error names every invalid field of the policy.
// isNew means that somebody is writing the policy now; a stored policy may use everything that any
// version of the gateway accepted.
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

// A build collects the errors of a policy while it is compiled.
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
	// returns is AnyType if it is known only at run time.
	returns *cel.Type
}

// GetExpression implements the compiler's interface.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements the compiler's interface.
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

// estimate refuses expressions that would always exceed the cost limit. It does not check a stored
// policy again: another version of Kubernetes may estimate more.
func (b *build) estimate(source *field.Path, text string) {
	if cost, tooMuch := b.compiler.costs.tooMuch(text); tooMuch {
		b.problems = append(b.problems, field.Forbidden(source, fmt.Sprintf("costs up to %d already for an object whose lists have %d items, and %d is the limit: nest fewer loops",
			cost, ordinarySize, celconfig.PerCallLimit)))
	}
}

// matchConditions are evaluated by the hub's API server, which reports errors in them for all
// webhooks together. Therefore they are checked here.
func (b *build) matchConditions(spec *admissionv1alpha1.ImmutabilityPolicySpec) {
	options := plugincel.OptionalVariableDeclarations{HasAuthorizer: true}
	for i, condition := range spec.Match.MatchConditions {
		b.compileWith(field.NewPath("spec", "match", "matchConditions").Index(i).Child("expression"), condition.Expression, cel.BoolType, options)
	}
}

func (b *build) rules(compiled *Compiled) {
	for _, r := range compiled.rules {
		if r.when != "" && b.compile(r.source.Child("when"), r.when, cel.AnyType).Error != nil {
			continue // The error of the enclosing field would repeat this one with more words.
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

// optional compiles an expression that may be empty; then it returns nil.
func (b *build) optional(source *field.Path, text string, returns *cel.Type) plugincel.ConditionEvaluator {
	if text == "" {
		return nil
	}
	return plugincel.NewCondition([]plugincel.CompilationResult{b.compile(source, text, returns)})
}

// joined formats the errors of a policy for a condition's message.
func joined(problems field.ErrorList) string {
	var all []error
	for _, p := range problems {
		all = append(all, p)
	}
	return errors.Join(all...).Error()
}
