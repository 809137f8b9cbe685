// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// docsFolder has the pages of the documentation.
const docsFolder = "docs"

// documents returns the paths of all documents, relative to the project's root.
func documents(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	walkIn(t, docsFolder, ".md", func(path, _ string) { found = append(found, path) })
	names := make([]string, 0, len(found))
	for _, path := range found {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if len(names) < 50 {
		t.Fatalf("only %q are found: this reads the wrong folder", names)
	}
	return names
}

// products returns the parsed Go files of the product.
func products(t *testing.T) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, dir := range []string{"cmd", "pkg"} {
		walkIn(t, dir, ".go", func(name, _ string) {
			if !strings.HasSuffix(name, "_test.go") {
				files = append(files, parse(t, name))
			}
		})
	}
	if len(files) < 100 {
		t.Fatalf("only %d files are found: this reads the wrong folder", len(files))
	}
	return files
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// textsIn returns the string constants of a source file, concatenations as one. Imports and struct
// tags are excluded.
func textsIn(piece ast.Node) []string {
	var texts []string
	ast.Inspect(piece, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			n.Tag = nil
		case ast.Expr:
			if text, ok := constant(n); ok {
				texts = append(texts, text)
				return false
			}
		}
		return true
	})
	return texts
}

// constant evaluates a string literal or a concatenation.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, e.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := constant(e.X)
		right, alsoOK := constant(e.Y)
		return left + right, ok && alsoOK && e.Op == token.ADD
	}
	return "", false
}

// tables returns the table cells of a document row by row, without heads and rules.
func tables(text string) [][]string {
	var rows [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isHead := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|--")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| ---") || isHead {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// section returns the part of a document below a heading, up to the next of its level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, after, ok := strings.Cut(text, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no heading %q", heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	under, _, _ := strings.Cut(after, "\n"+level+" ")
	return under
}

// inBackticks returns the texts in backticks.
func inBackticks(text string) []string {
	var found []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			found = append(found, part)
		}
	}
	return found
}

// write replaces a document.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
