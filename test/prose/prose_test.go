// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// finding is an expression of the word list in a file.
type finding struct {
	line          int
	text, instead string
}

// TestProse fails for a file with an expression of the word list.
func TestProse(t *testing.T) {
	found := read(t)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		t.Errorf("%s has %d expressions of the word list. Rewrite the sentences:\n%s", path, len(found[path]), describe(found[path]))
	}
}

func TestTermsFindWhatTheyAreFor(t *testing.T) {
	for text, want := range map[string]bool{
		"the member is away":                   true,
		"drift is put right at once":           true,
		"agents of the version before":         true,
		"Empty: all of them":                   true,
		"requests that last are limited":       true,
		"the replica that is led":              true,
		"the agent reverts drift":              false,
		"right away the previous version runs": false,
	} {
		if got := len(findings(text, 1)) > 0; got != want {
			t.Errorf("findings in %q: %t, want %t", text, got, want)
		}
	}
}

// read returns the findings in the documents, charts and Go files of the project, by path.
func read(t *testing.T) map[string][]finding {
	t.Helper()
	found := map[string][]finding{}
	files := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if skipped(name) {
				return filepath.SkipDir
			}
			return nil
		}
		list, ok, err := inFile(path, name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if ok {
			files++
		}
		if len(list) > 0 {
			found[filepath.ToSlash(name)] = list
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const least = 1000
	if files < least {
		t.Fatalf("%d files were read, at least %d are known", files, least)
	}
	return found
}

// skipped reports whether a folder holds nothing that people of the project write.
func skipped(name string) bool {
	return name == ".git" || name == ".fleetgate" || filepath.Base(name) == "testdata" || name == filepath.Join("test", "prose")
}

func inFile(path, name string) (list []finding, ok bool, err error) {
	switch ext := filepath.Ext(name); {
	case strings.HasPrefix(filepath.Base(name), "zz_generated"):
		return nil, false, nil
	case ext == ".go":
		list, err = inGo(path, upstream[filepath.ToSlash(name)])
		return list, true, err
	case ext == ".md", strings.HasPrefix(name, "charts"), strings.HasPrefix(name, filepath.Join("pkg", "webhook", "policies")), name == "Makefile", ext == ".html":
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, false, err
		}
		for i, line := range strings.Split(string(text), "\n") {
			list = append(list, findings(line, i+1)...)
		}
		return list, true, nil
	}
	return nil, false, nil
}

// inGo reads comments, string constants and the names of tests. Expressions in string constants that
// match quoted are not findings.
func inGo(path string, quoted *regexp.Regexp) ([]finding, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var list []finding
	at := func(pos token.Pos) int { return set.Position(pos).Line }
	for _, group := range file.Comments {
		list = append(list, findings(strings.ReplaceAll(group.Text(), "\n", " "), at(group.Pos()))...)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				if quoted != nil {
					text = quoted.ReplaceAllString(text, "")
				}
				list = append(list, findings(text, at(n.Pos()))...)
			}
		}
		return true
	})
	slices.SortStableFunc(list, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return list, nil
}

func findings(text string, line int) []finding {
	var list []finding
	for _, term := range terms {
		for _, match := range term.pattern.FindAllString(text, -1) {
			list = append(list, finding{line, match, term.instead})
		}
	}
	return list
}

func describe(list []finding) string {
	var text strings.Builder
	for _, f := range list[:min(len(list), 20)] {
		fmt.Fprintf(&text, "  line %d: %q; write: %s\n", f.line, f.text, f.instead)
	}
	return text.String()
}
