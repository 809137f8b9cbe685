// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// exported reports exported names without a comment in packages that can be imported. A comment on
// a group of constants or variables is sufficient.
var exported = &analysis.Analyzer{
	Name: "exported",
	Doc:  "exported names have a comment",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, file := range pass.Files {
			name := pass.Fset.Position(file.Package).Filename
			if pass.Pkg.Name() == "main" || strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, decl := range file.Decls {
				for _, found := range unexplained(decl) {
					pass.Reportf(found.Pos(), "%s is exported: say what it is for", found.Name)
				}
			}
		}
		return nil, nil
	},
}

// wellKnown are methods of widely known interfaces, whose names explain them.
var wellKnown = []string{
	"Error", "Unwrap", "Is", "As", "String", "Len", "Less", "Swap", "Read", "Write", "Close", "ServeHTTP",
	"MarshalJSON", "UnmarshalJSON", "Set", "Type", "Describe", "Collect",
}

func unexplained(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc.Text() != "" || !d.Name.IsExported() || d.Recv != nil && (!isExported(d.Recv) || slices.Contains(wellKnown, d.Name.Name)) {
			return nil
		}
		return []*ast.Ident{d.Name}
	case *ast.GenDecl:
		if d.Tok == token.IMPORT || d.Doc.Text() != "" {
			return nil
		}
		var found []*ast.Ident
		for _, spec := range d.Specs {
			found = append(found, unexplainedOf(spec)...)
		}
		return found
	}
	return nil
}

func unexplainedOf(spec ast.Spec) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc.Text() == "" && s.Comment.Text() == "" && s.Name.IsExported() {
			return []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if s.Doc.Text() == "" && s.Comment.Text() == "" {
			return slices.DeleteFunc(slices.Clone(s.Names), func(name *ast.Ident) bool { return !name.IsExported() })
		}
	}
	return nil
}

// isExported reports whether a receiver's type is visible to other packages.
func isExported(receiver *ast.FieldList) bool {
	of := receiver.List[0].Type
	for {
		switch t := of.(type) {
		case *ast.StarExpr:
			of = t.X
		case *ast.IndexExpr:
			of = t.X
		case *ast.IndexListExpr:
			of = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}
