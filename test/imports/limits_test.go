// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is longer than these is more than one subject.
const (
	longestFile     = 450
	longestFunction = 60
)

// longer are the files that have more lines all the same, and why.
var longer = map[string]string{
	"pkg/cluster/membership/status.go": "what is written of a member is being changed there: it is split afterwards",
}

// TestFilesAndFunctionsAreShort holds all that ships, but for what is generated.
func TestFilesAndFunctionsAreShort(t *testing.T) {
	root := filepath.Join("..", "..")
	for _, folder := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if ast.IsGenerated(file) {
				return nil
			}
			lines := bytes.Count(content, []byte("\n"))
			if reason, excused := longer[relative]; excused != (lines > longestFile) {
				t.Errorf("%s has %d lines, the limit is %d, and the table of this test says %q: split it by subject, or mend the table", relative, lines, longestFile, reason)
			}
			for _, declared := range file.Decls {
				function, ok := declared.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if length := files.Position(function.End()).Line - files.Position(function.Pos()).Line + 1; length > longestFunction {
					t.Errorf("%s: %s has %d lines, the limit is %d: let it tell one story", relative, function.Name.Name, length, longestFunction)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
