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

// Looks is the set of fields and scores that expressions read. The zero value is nothing.
type Looks struct {
	// paths are fields of the cluster; an empty one is all of it.
	paths [][]string
	// sheets are names of score sheets; allSheets is true if the names cannot be determined.
	sheets    []string
	allSheets bool
}

// At is true if scores of that name are read.
func (l *Looks) At(sheet string) bool { return l.allSheets || slices.Contains(l.sheets, sheet) }

// Differ is true if any field that is read differs between two states of a cluster.
func (l *Looks) Differ(a, b map[string]any) bool {
	return slices.ContainsFunc(l.paths, func(path []string) bool {
		was, wasThere, wasErr := unstructured.NestedFieldNoCopy(a, path...)
		is, isThere, isErr := unstructured.NestedFieldNoCopy(b, path...)
		return wasThere != isThere || (wasErr == nil) != (isErr == nil) || !equality.Semantic.DeepEqual(was, is)
	})
}

// Join adds the fields of another.
func (l *Looks) Join(other Looks) {
	l.paths = append(l.paths, other.paths...)
	l.sheets = append(l.sheets, other.sheets...)
	l.allSheets = l.allSheets || other.allSheets
}

// Nothing is true if no field of a cluster is read.
func (l *Looks) Nothing() bool { return len(l.paths) == 0 }

func (l *Looks) add(expression *cel.Ast) { l.visit(expression.NativeRep().Expr()) }

// visit descends to the variable, and records the longest path of fields from it.
func (l *Looks) visit(e ast.Expr) {
	if path, ok := pathOf(e); ok {
		l.note(path)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		l.visit(e.AsSelect().Operand())
	case ast.CallKind:
		l.visitCall(e.AsCall())
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			l.visit(element)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			l.visit(entry.AsMapEntry().Key())
			l.visit(entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		for _, part := range []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			l.visit(part)
		}
	case ast.LiteralKind, ast.IdentKind:
	default:
		l.note(nil) // An unknown kind of expression may read everything.
	}
}

func (l *Looks) visitCall(call ast.CallExpr) {
	if call.IsMemberFunction() {
		if call.FunctionName() == scoresFunction && isVariable(call.Target()) {
			l.noteScores(call.Args())
		} else {
			l.visit(call.Target())
		}
	}
	for _, argument := range call.Args() {
		l.visit(argument)
	}
}

func (l *Looks) noteScores(arguments []ast.Expr) {
	if len(arguments) == 1 && arguments[0].Kind() == ast.LiteralKind {
		if name, ok := arguments[0].AsLiteral().(types.String); ok {
			l.sheets = append(l.sheets, string(name))
			return
		}
	}
	l.allSheets = true
}

func (l *Looks) note(path []string) {
	if !slices.ContainsFunc(l.paths, func(known []string) bool { return slices.Equal(known, path) }) {
		l.paths = append(l.paths, path)
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
