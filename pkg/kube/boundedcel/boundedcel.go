// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundedcel

import (
	"errors"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

const (
	// CallCost limits one expression, in the units in which API servers limit the rules of a
	// CustomResourceDefinition: about 0.1 s.
	CallCost = 1_000_000
	// TotalCost limits all expressions for one object: about 1 s.
	TotalCost = 10_000_000
	// maxPrograms is how many compiled expressions are cached.
	maxPrograms = 1024
	// longest expression, in bytes.
	longest = 16 << 10
)

// ErrTooExpensive is returned by Run when a budget is used up.
var ErrTooExpensive = errors.New("CEL evaluation budget exceeded")

// Compiler compiles expressions. It is safe for concurrent use.
type Compiler struct {
	env   *cel.Env
	costs costs

	mu       sync.Mutex // guards programs
	programs map[string]compiled
}

type compiled struct {
	program *Program
	err     error
}

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	program cel.Program
	ast     *cel.Ast
}

// NewCompiler adds variables and functions to those that API servers support.
func NewCompiler(options ...cel.EnvOption) (*Compiler, error) {
	shared, err := cel.NewEnv(
		ext.Strings(ext.StringsVersion(2)), ext.Sets(), cel.OptionalTypes(), cel.CrossTypeNumericComparisons(true),
		library.Lists(), library.Regex(), library.URLs(), library.Quantity(), library.IP(), library.CIDR(), library.Format(), library.SemverLib(),
	)
	if err != nil {
		return nil, fmt.Errorf("setting up expressions: %w", err)
	}
	return newCompiler(shared, costs{shared: shared}).With(options...)
}

// With is the compiler with more variables and functions.
func (c *Compiler) With(options ...cel.EnvOption) (*Compiler, error) {
	env, err := c.env.Extend(options...)
	if err != nil {
		return nil, fmt.Errorf("setting up expressions: %w", err)
	}
	return newCompiler(env, c.costs), nil
}

func newCompiler(env *cel.Env, costs costs) *Compiler {
	return &Compiler{env: env, costs: costs, programs: map[string]compiled{}}
}

// Compile caches its results, including errors.
func (c *Compiler) Compile(text string) (*Program, error) {
	c.mu.Lock()
	known, is := c.programs[text]
	c.mu.Unlock()
	if is {
		return known.program, known.err
	}
	made := c.compile(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.programs) >= maxPrograms {
		clear(c.programs)
	}
	c.programs[text] = made
	return made.program, made.err
}

func (c *Compiler) compile(text string) compiled {
	if len(text) > longest {
		return compiled{err: fmt.Errorf("the expression has %d bytes, the limit is %d", len(text), longest)}
	}
	ast, issues := c.env.Compile(text)
	if issues.Err() != nil {
		return compiled{err: issues.Err()}
	}
	program, err := c.env.Program(ast, cel.CostLimit(CallCost), cel.CostTracking(c.costs), BoundedQuantities())
	if err != nil {
		return compiled{err: err}
	}
	return compiled{program: &Program{program: program, ast: ast}}
}

// AST is the parsed and type-checked expression.
func (p *Program) AST() *cel.Ast { return p.ast }

// Run evaluates the expression within the budget, and subtracts its cost.
func (p *Program) Run(input map[string]any, budget *uint64) (any, error) {
	out, details, err := p.program.Eval(input)
	if details != nil && details.ActualCost() != nil {
		cost := *details.ActualCost()
		if cost > *budget {
			*budget = 0
			return nil, errors.Join(err, ErrTooExpensive)
		}
		*budget -= cost
	}
	if err != nil {
		return nil, err
	}
	return out.Value(), nil
}
