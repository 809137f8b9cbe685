// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"fmt"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"k8s.io/apimachinery/pkg/util/version"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

// ordinarySize is how many items, keys or bytes an estimate takes everything for
// that is part of an object: no schema is there to bound it. An expression that costs
// too much for objects as small as that would be stopped for most of them, and a
// policy that fails open would never say anything.
const ordinarySize = 8

// An estimator says what expressions may cost before there is any object.
type estimator struct{ env *cel.Env }

// newEstimator declares the variables of all expressions, without their types: what
// does not fit was found by the compiler.
func newEstimator(base *environment.EnvSet) (*estimator, error) {
	var variables []cel.EnvOption
	for _, name := range []string{
		plugincel.ObjectVarName, plugincel.OldObjectVarName, plugincel.NamespaceVarName, plugincel.RequestVarName, plugincel.ParamsVarName,
	} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	extended, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // What was always there.
		EnvOptions:        append(variables, cel.Variable(plugincel.AuthorizerVarName, library.AuthorizerType)),
	}, environment.StrictCostOpt)
	if err != nil {
		return nil, fmt.Errorf("setting up estimates of CEL: %w", err)
	}
	env, err := extended.Env(environment.NewExpressions)
	if err != nil {
		return nil, fmt.Errorf("setting up estimates of CEL: %w", err)
	}
	return &estimator{env}, nil
}

// tooMuch returns an estimate that is above what one expression may cost, and
// whether it is. What does not compile costs nothing.
func (e *estimator) tooMuch(text string) (uint64, bool) {
	parsed, issues := e.env.Compile(text)
	if issues.Err() != nil {
		return 0, false
	}
	cost, err := e.env.EstimateCost(parsed, &library.CostEstimator{SizeEstimator: ordinarySizes{}})
	return cost.Max, err == nil && cost.Max > celconfig.PerCallLimit
}

// ordinarySizes answers for what an expression does not say the size of.
type ordinarySizes struct{}

// EstimateSize is for the cost estimator.
func (ordinarySizes) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Max: ordinarySize}
}

// EstimateCallCost leaves all calls to Kubernetes' own estimates.
func (ordinarySizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
