// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const keysBegin, keysEnd = "<!-- keys.", "<!-- end of keys -->"

// keysTable has the keys that the page does not explain elsewhere, with the comments of their
// constants. A key with several constants has several meanings and is listed in any case.
func keysTable(t *testing.T) string {
	t.Helper()
	page := read(t, "docs/reference/api.md")
	before, rest, _ := strings.Cut(page, keysBegin)
	_, after, _ := strings.Cut(rest, keysEnd)
	explained := map[string]bool{}
	for _, row := range tables(before + after) {
		for _, key := range inBackticks(row[0]) {
			explained[key] = true
		}
	}
	var b strings.Builder
	b.WriteString("| key | meaning |\n|---|---|\n")
	meanings := keyMeanings(t)
	for _, key := range slices.Sorted(maps.Keys(meanings)) {
		if !explained[key] || len(meanings[key]) > 1 {
			fmt.Fprintf(&b, "| `%s` | %s |\n", key, strings.Join(meanings[key], " "))
		}
	}
	return b.String()
}

// keyMeanings has the comments of all constants that are keys, by key.
func keyMeanings(t *testing.T) map[string][]string {
	t.Helper()
	folders := map[string][]*ast.File{}
	for _, dir := range []string{"cmd", "pkg"} {
		walkIn(t, dir, ".go", func(path, _ string) {
			if strings.HasSuffix(path, "_test.go") {
				return
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], file)
		})
	}
	meanings := map[string][]string{}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		constants := constantsIn(folders[folder])
		for _, file := range folders[folder] {
			comments := commentsOfConstants(file)
			for _, name := range slices.Sorted(maps.Keys(comments)) {
				if key := constants[name]; strings.HasPrefix(key, keyPrefix) && key != keyPrefix {
					meanings[key] = append(meanings[key], meaningOf(name, comments[name], constants))
				}
			}
		}
	}
	return meanings
}

// commentsOfConstants has the comment of each constant of a file, or that of its group, by name.
func commentsOfConstants(file *ast.File) map[string]string {
	comments := map[string]string{}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			constant, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			comment := constant.Doc.Text()
			if comment == "" {
				comment = group.Doc.Text()
			}
			for _, name := range constant.Names {
				comments[name.Name] = oneLine(comment)
			}
		}
	}
	return comments
}

// meaningOf is a comment without the constant's own name, and with values instead of the names of
// other constants.
func meaningOf(name, comment string, constants map[string]string) string {
	comment = strings.TrimSuffix(strings.TrimPrefix(comment, name+" "), " Remove after the next release.")
	comment = strings.TrimPrefix(comment, "is ")
	comment = regexp.MustCompile(`[A-Za-z]\w+`).ReplaceAllStringFunc(comment, func(word string) string {
		if value := constants[word]; value != "" && value != word && strings.ContainsFunc(word[1:], unicode.IsUpper) {
			return "`" + value + "`"
		}
		return word
	})
	first, size := rune(comment[0]), 1
	return string(unicode.ToUpper(first)) + comment[size:]
}
