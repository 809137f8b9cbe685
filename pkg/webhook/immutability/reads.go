// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	celast "github.com/google/cel-go/common/ast"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
)

// lookupsField is the field of params in which expressions find lookups.
const lookupsField = "lookups"

// needs returns the lookups that an expression reads as params.lookups.<name>. With
// params.lookups.?<name> or has() it does not need them, because the author has handled their
// absence.
func (c *Compiler) needs(text string) map[string]bool {
	found := map[string]bool{}
	c.visit(text, func(e celast.Expr) {
		if e.Kind() != celast.SelectKind || e.AsSelect().IsTestOnly() {
			return
		}
		parent := e.AsSelect().Operand()
		if parent.Kind() != celast.SelectKind || parent.AsSelect().FieldName() != lookupsField {
			return
		}
		root := parent.AsSelect().Operand()
		if root.Kind() == celast.IdentKind && root.AsIdent() == plugincel.ParamsVarName {
			found[e.AsSelect().FieldName()] = true
		}
	})
	return found
}

// mentions is true if an expression reads a variable.
func (c *Compiler) mentions(text, variable string) bool {
	found := false
	c.visit(text, func(e celast.Expr) { found = found || e.Kind() == celast.IdentKind && e.AsIdent() == variable })
	return found
}

// visit visits every part of an expression; one that cannot be parsed has none.
func (c *Compiler) visit(text string, show func(celast.Expr)) {
	parsed, issues := c.parser.Parse(text)
	if issues.Err() != nil {
		return
	}
	celast.PreOrderVisit(parsed.NativeRep().Expr(), celast.NewExprVisitor(show))
}
