// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercel

import (
	"fmt"

	"fleetgate.io/fleetgate/pkg/kube/boundedcel"
)

// Compiler compiles selectors. It is safe for concurrent use.
type Compiler struct{ compiler *boundedcel.Compiler }

// NewCompiler returns a Compiler.
func NewCompiler() (*Compiler, error) {
	compiler, err := boundedcel.NewCompiler(functions()...)
	if err != nil {
		return nil, fmt.Errorf("setting up cluster selectors: %w", err)
	}
	return &Compiler{compiler: compiler}, nil
}

// Selector is compiled expressions, all of which have to be true.
type Selector struct {
	programs     []*boundedcel.Program
	dependencies Dependencies
}

// Compile fails for the first expression that cannot be compiled.
func (c *Compiler) Compile(expressions []string) (*Selector, error) {
	s := &Selector{}
	for _, text := range expressions {
		program, err := c.compiler.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("compilation failed: %w", err)
		}
		s.programs = append(s.programs, program)
		s.dependencies.add(program.AST())
	}
	return s, nil
}

// Matches is true if all expressions are true for a cluster. It fails for an expression that cannot
// be evaluated, that is not a boolean, or that costs too much.
func (s *Selector) Matches(cluster *Cluster) (bool, error) {
	budget := uint64(boundedcel.TotalCost)
	input := map[string]any{variable: cluster}
	for _, program := range s.programs {
		value, err := program.Run(input, &budget)
		if err != nil {
			return false, err
		}
		holds, ok := value.(bool)
		if !ok {
			return false, fmt.Errorf("expected bool result, got %T", value)
		}
		if !holds {
			return false, nil
		}
	}
	return true, nil
}

// Dependencies are the fields and scores that the expressions read.
func (s *Selector) Dependencies() Dependencies { return s.dependencies }
