// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"flag"
	"fmt"
	"go/ast"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// update writes the generated tables instead of comparing them.
var update = flag.Bool("update", false, "write the tables that are made from the code")

// TestTablesAreThoseOfTheCode compares the generated tables with the code.
func TestTablesAreThoseOfTheCode(t *testing.T) {
	for _, table := range []struct {
		document, begin, end string
		want                 string
	}{
		{"docs/architecture.md", "<!-- imports.", "<!-- end of imports -->", importTable(t)},
		{"docs/reference/admission.md", "<!-- policies.", "<!-- end of policies -->", policiesTable(t)},
		{"docs/reference/api.md", keysBegin, keysEnd, keysTable(t)},
		{"docs/reference/metrics.md", "<!-- metrics.", "<!-- end of metrics -->", metricsTable(t)},
	} {
		text := read(t, table.document)
		before, rest, ok := strings.Cut(text, table.begin)
		marker, rest, alsoOK := strings.Cut(rest, "\n")
		got, after, ended := strings.Cut(rest, table.end)
		if !ok || !alsoOK || !ended {
			t.Errorf("%s has no section between %q and %q", table.document, table.begin, table.end)
			continue
		}
		if *update {
			write(t, table.document, before+table.begin+marker+"\n"+table.want+table.end+after)
			continue
		}
		if diff := cmp.Diff(table.want, got); diff != "" {
			t.Errorf("%s, after %q: run go test ./test/documents -update (-want +got):\n%s", table.document, table.begin, diff)
		}
	}
}

// importTable returns the table of test/imports for the page.
func importTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| package | must not import | because |\n|---|---|---|\n")
	for _, row := range importRows(t) {
		target := "`" + row["to"][0] + "`"
		if row["to"][0] == "" {
			target = "others of ours"
		}
		if len(row["except"]) > 0 {
			target += " but `" + strings.Join(row["except"], "`, `") + "`"
		}
		if len(row["through"]) > 0 {
			target += ", at any depth"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row["from"][0], target, row["reason"][0])
	}
	return b.String()
}

// importRows reads the rows of the table from the test's source, each as the texts of its fields,
// without the module's name. The table is not exported.
func importRows(t *testing.T) []map[string][]string {
	t.Helper()
	var rows []map[string][]string
	ast.Inspect(parse(t, root+"/test/imports/imports_test.go"), func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		row := map[string][]string{}
		for _, element := range literal.Elts {
			if field, ok := element.(*ast.KeyValueExpr); ok {
				row[fmt.Sprint(field.Key)] = pathsIn(field.Value)
			}
		}
		if len(row["from"]) == 1 && len(row["to"]) == 1 && len(row["reason"]) == 1 {
			rows = append(rows, row)
		}
		return true
	})
	const least = 20
	if len(rows) < least {
		t.Fatalf("test/imports has %d rows, at least %d are known: its source is not read as it is written", len(rows), least)
	}
	return rows
}

// pathsIn returns the paths in an expression. The identifier `module` stands for the prefix of all
// our packages; `true` stands for itself.
func pathsIn(e ast.Expr) []string {
	switch e := e.(type) {
	case *ast.Ident:
		if e.Name == "module" {
			return []string{""}
		}
		return []string{e.Name}
	case *ast.CompositeLit:
		var all []string
		for _, element := range e.Elts {
			all = append(all, pathsIn(element)...)
		}
		return all
	}
	return textsIn(e)
}

// policiesTable has the rules of admission policies: the first paragraph of each source file that
// begins with the name of its policy.
func policiesTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| policy | rule |\n|---|---|\n")
	rows := 0
	walkIn(t, "pkg/webhook/policies", ".yaml", func(_, text string) {
		_, comment, _ := strings.Cut(text, "\n\n")
		comment, _, _ = strings.Cut(comment, "\n#\n")
		name, rule, ok := strings.Cut(oneLine(strings.ReplaceAll(comment, "# ", "")), ": ")
		if ok && strings.HasPrefix(name, "fleetgate-") && !strings.Contains(name, " ") {
			rows++
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, rule)
		}
	})
	const least = 18
	if rows < least {
		t.Fatalf("only %d policies explain their rule, at least %d are known", rows, least)
	}
	return b.String()
}
