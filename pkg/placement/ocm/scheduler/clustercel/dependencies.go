// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Dependencies are the fields and scores that expressions read. The zero value is nothing.
type Dependencies struct {
	// paths are fields of the cluster; an empty one is all of it.
	paths [][]string
	// sheets are names of score sheets; allSheets is true if the names cannot be determined.
	sheets    []string
	allSheets bool
}

// ReadsScores is true if scores of that name are read.
func (d *Dependencies) ReadsScores(sheet string) bool {
	return d.allSheets || slices.Contains(d.sheets, sheet)
}

// Differ is true if any field that is read differs between two states of a cluster.
func (d *Dependencies) Differ(a, b map[string]any) bool {
	return slices.ContainsFunc(d.paths, func(path []string) bool {
		was, wasThere, wasErr := unstructured.NestedFieldNoCopy(a, path...)
		is, isThere, isErr := unstructured.NestedFieldNoCopy(b, path...)
		return wasThere != isThere || (wasErr == nil) != (isErr == nil) || !equality.Semantic.DeepEqual(was, is)
	})
}

// Merge adds the fields of another.
func (d *Dependencies) Merge(other Dependencies) {
	d.paths = append(d.paths, other.paths...)
	d.sheets = append(d.sheets, other.sheets...)
	d.allSheets = d.allSheets || other.allSheets
}

// IsEmpty is true if no field of a cluster is read.
func (d *Dependencies) IsEmpty() bool { return len(d.paths) == 0 }

func (d *Dependencies) add(expression *cel.Ast) { d.visit(expression.NativeRep().Expr()) }

// visit descends to the variable, and records the longest path of fields from it.
func (d *Dependencies) visit(e ast.Expr) {
	if path, ok := pathOf(e); ok {
		d.note(path)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		d.visit(e.AsSelect().Operand())
	case ast.CallKind:
		d.visitCall(e.AsCall())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			d.visit(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			d.visit(entry.AsMapEntry().Key())
			d.visit(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			d.visit(part)
		}
	case ast.LiteralKind, ast.IdentKind:
	default:
		d.note(nil) // An unknown kind of expression may read everything.
	}
}

func (d *Dependencies) visitCall(call ast.CallExpr) {
	if call.IsMemberFunction() {
		if call.FunctionName() == scoresFunction && isVariable(call.Target()) {
			d.noteScores(call.Args())
		} else {
			d.visit(call.Target())
		}
	}
	for _, argument := range call.Args() {
		d.visit(argument)
	}
}

func (d *Dependencies) noteScores(arguments []ast.Expr) {
	if len(arguments) == 1 && arguments[0].Kind() == ast.LiteralKind {
		if name, ok := arguments[0].AsLiteral().(types.String); ok {
			d.sheets = append(d.sheets, string(name))
			return
		}
	}
	d.allSheets = true
}

func (d *Dependencies) note(path []string) {
	if !slices.ContainsFunc(d.paths, func(known []string) bool { return slices.Equal(known, path) }) {
		d.paths = append(d.paths, path)
	}
}

func isVariable(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && strings.TrimPrefix(e.AsIdent(), ".") == variable
}

// pathOf is the path of an expression that is the variable, or a field of it with a literal name.
func pathOf(e ast.Expr) ([]string, bool) {
	if isVariable(e) {
		return []string{}, true
	}
	of, field := e, ""
	switch e.Kind() {
	case ast.SelectKind:
		of, field = e.AsSelect().Operand(), e.AsSelect().FieldName()
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != "_[_]" || call.Args()[1].Kind() != ast.LiteralKind {
			return nil, false
		}
		name, ok := call.Args()[1].AsLiteral().(types.String)
		if !ok {
			return nil, false
		}
		of, field = call.Args()[0], string(name)
	default:
		return nil, false
	}
	path, ok := pathOf(of)
	return append(path, field), ok
}
