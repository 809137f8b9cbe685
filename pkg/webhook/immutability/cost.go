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

// ordinarySize is the assumed number of items, keys or bytes of every part of an object, because no
// schema limits it. An expression that costs too much even for such small objects would fail for
// most of them, and a policy that fails open would never apply.
const ordinarySize = 8

// An estimator estimates the cost of expressions without an object.
type estimator struct{ env *cel.Env }

// newEstimator declares the variables of all expressions without types, because the compiler has
// already checked the types.
func newEstimator(base *environment.EnvSet) (*estimator, error) {
	var variables []cel.EnvOption
	for _, name := range []string{
		plugincel.ObjectVarName, plugincel.OldObjectVarName, plugincel.NamespaceVarName, plugincel.RequestVarName, plugincel.ParamsVarName,
	} {
		variables = append(variables, cel.Variable(name, cel.DynType))
	}
	extended, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), // Enabled for every compatibility version.
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

// tooMuch returns the estimate, and whether it exceeds the limit of one expression. The estimate of
// an invalid expression is zero.
func (e *estimator) tooMuch(text string) (uint64, bool) {
	parsed, issues := e.env.Compile(text)
	if issues.Err() != nil {
		return 0, false
	}
	cost, err := e.env.EstimateCost(parsed, &library.CostEstimator{SizeEstimator: ordinarySizes{}})
	return cost.Max, err == nil && cost.Max > celconfig.PerCallLimit
}

// ordinarySizes estimates values whose size an expression does not determine.
type ordinarySizes struct{}

// EstimateSize implements the cost estimator.
func (ordinarySizes) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Max: ordinarySize}
}

// EstimateCallCost uses Kubernetes' own estimates for all calls.
func (ordinarySizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
