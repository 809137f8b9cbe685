// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/unused"
)

// staticchecks are the checks that the command staticcheck runs by default.
func staticchecks() []*analysis.Analyzer {
	checks := []*analysis.Analyzer{unusedCode}
	for _, of := range [][]*lint.Analyzer{staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers} {
		for _, check := range of {
			if !check.Doc.NonDefault {
				checks = append(checks, check.Analyzer)
			}
		}
	}
	return checks
}

// unusedCode reports what staticcheck finds unused, as the command does. go vet analyzes a package
// together with its test files, so uses in them count.
var unusedCode = &analysis.Analyzer{
	Name:     "U1000",
	Doc:      "report unused code",
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		for _, object := range pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result).Unused {
			for _, file := range pass.Files {
				if in := pass.Fset.File(file.FileStart); in.Name() == object.Position.Filename {
					pass.Reportf(in.LineStart(object.Position.Line), "%s %s is unused", object.Kind, object.Name)
				}
			}
		}
		return nil, nil
	},
}
