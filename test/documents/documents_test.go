// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents compares the documents with the code.
package documents

import (
	"encoding/csv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

// promises is the number of public promises.
const promises = 125

// TestConformanceNamesRealTests fails for a promise without a row, and for a row that names a test
// that does not exist. A row can be for several promises.
func TestConformanceNamesRealTests(t *testing.T) {
	tests, seen := testNames(t), map[int]bool{}
	for _, line := range strings.Split(read(t, "docs/conformance.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) == 4 {
			named(t, tests, line, cells[2])
		}
		if len(cells) != 6 || !regexp.MustCompile(`^ \d+(, \d+)* $`).MatchString(cells[1]) {
			continue
		}
		numbered(t, seen, cells[1], promises)
		if !strings.Contains(cells[4], "`") {
			t.Errorf("row%shas no test", cells[1])
		}
		named(t, tests, "row"+strings.TrimRight(cells[1], " "), cells[4])
	}
	if len(seen) != promises {
		t.Errorf("docs/conformance.md has %d promises, want %d", len(seen), promises)
	}
}

// numbered adds the numbers of a row to seen, each of which has one row.
func numbered(t *testing.T, seen map[int]bool, list string, most int) {
	t.Helper()
	for _, text := range strings.Split(strings.TrimSpace(list), ", ") {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > most || seen[number] {
			t.Errorf("number %s is in two rows, or is not between 1 and %d", text, most)
		}
		seen[number] = true
	}
}

// TestAreasOfWorksNameRealTests does the same for areas of upstream suites for works: each area has
// a test or a reason why it has none.
func TestAreasOfWorksNameRealTests(t *testing.T) {
	tests, areas := testNames(t), 0
	for _, line := range strings.Split(read(t, "docs/conformance.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !regexp.MustCompile(`^ W\d+ $`).MatchString(cells[1]) {
			continue
		}
		areas++
		if !strings.Contains(cells[3], "`") && !strings.Contains(cells[4], "not built") {
			t.Errorf("area%shas neither a test nor a reason", cells[1])
		}
		named(t, tests, "area"+strings.TrimRight(cells[1], " "), cells[3])
	}
	if areas == 0 {
		t.Error("docs/conformance.md has no areas: this test reads the wrong lines")
	}
}

// specs is the number of specs in upstream's suite for works.
const specs = 85

// TestSpecsNameRealTests does the same for each spec of upstream's suites for works, placements and registration, and
// for add-ons and webhooks. A row can be for several specs. Those of works are numbered.
func TestSpecsNameRealTests(t *testing.T) {
	tests, seen := testNames(t), map[int]bool{}
	for i, row := range specRows(t) {
		for _, name := range row.tests {
			if !tests[name] {
				t.Errorf("row %d names the test %q, which does not exist", i+1, name)
			}
		}
		if row.suite != "works" {
			continue // Only specs of works have numbers.
		}
		numbered(t, seen, row.numbers, specs)
	}
	if len(seen) != specs {
		t.Errorf("testdata/ocm-specs.csv has %d specs of works, want %d", len(seen), specs)
	}
}

// A specRow names the tests for one or several specs of an upstream suite.
type specRow struct {
	suite, numbers string
	tests          []string
}

// specRows reads testdata/ocm-specs.csv. Specs of what is not built have no tests.
func specRows(t *testing.T) []specRow {
	t.Helper()
	table, err := csv.NewReader(strings.NewReader(read(t, "test/documents/testdata/ocm-specs.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]specRow, 0, len(table))
	for _, cells := range table[1:] {
		row := specRow{suite: cells[0], numbers: cells[1]}
		if cells[3] != "not built" {
			row.tests = strings.Split(cells[3], "|")
		}
		rows = append(rows, row)
	}
	return rows
}

// named fails for each test of a row that does not exist.
func named(t *testing.T, tests map[string]bool, row, text string) {
	t.Helper()
	for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		if !tests[name[1]] {
			t.Errorf("%s names the test %q, which does not exist", row, name[1])
		}
	}
}

// TestDocumentsNameRealTargets fails for a make target that does not exist.
func TestDocumentsNameRealTargets(t *testing.T) {
	makefile := read(t, "Makefile")
	found := 0
	for _, document := range documents(t) {
		for _, match := range regexp.MustCompile("`make ([a-z][a-z0-9-]*)|(?m:^)make ([a-z][a-z0-9-]*)(?m: +#|$)").FindAllStringSubmatch(read(t, document), -1) {
			found++
			if target := match[1] + match[2]; !strings.Contains(makefile, "\n"+target+":") {
				t.Errorf("%s says `make %s`, which the Makefile does not have", document, target)
			}
		}
	}
	if found == 0 {
		t.Error("no document names a make target: this test reads the wrong files")
	}
}

// TestDocumentsNameRealFiles fails for a path in backticks that does not exist. A Go file without a
// path must exist somewhere.
func TestDocumentsNameRealFiles(t *testing.T) {
	bare, somewhere := regexp.MustCompile("`([a-z_]+\\.go)`"), map[string]bool{}
	walk(t, ".go", func(name, _ string) { somewhere[filepath.Base(name)] = true })
	path := regexp.MustCompile("`((?:cmd|pkg|test|hack|docs|examples|charts)/[A-Za-z0-9_./-]*)`")
	for _, document := range documents(t) {
		for _, match := range path.FindAllStringSubmatch(read(t, document), -1) {
			if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
				t.Errorf("%s names %s, which is not there", document, match[1])
			}
		}
		for _, match := range bare.FindAllStringSubmatch(read(t, document), -1) {
			if !somewhere[match[1]] {
				t.Errorf("%s names %s, which is nowhere", document, match[1])
			}
		}
	}
}

// TestLinksLeadSomewhere fails for a link to a document or heading that does not exist.
func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]*)(#[^)]*)?\)`)
	for _, document := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(read(t, document), -1) {
			target := filepath.Join(filepath.Dir(document), match[1])
			if match[1] == "" {
				target = document
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", document, match[1])
				continue
			}
			if match[2] != "" && !headings(read(t, target))[match[2][1:]] {
				t.Errorf("%s links to %s in %s, which has no such heading", document, match[2], target)
			}
		}
	}
}

// headings returns the anchors of a document's headings.
func headings(text string) map[string]bool {
	anchors := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		plain := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return anchors
}

// TestThreatsNameRealTests fails for a test in docs/reference/threats.md that does not exist.
func TestThreatsNameRealTests(t *testing.T) {
	tests, named := testNames(t), 0
	for _, row := range tables(read(t, threatsPage)) {
		for _, test := range inBackticks(row[len(row)-1]) {
			if named++; !tests[test] {
				t.Errorf("%s names the test %q, which does not exist", threatsPage, test)
			}
		}
	}
	if named == 0 {
		t.Errorf("%s names no test: this test reads the wrong table", threatsPage)
	}
}

// TestHelpIsComplete checks that `make` prints every public target.
func TestHelpIsComplete(t *testing.T) {
	command := exec.CommandContext(t.Context(), "make", "-s", "-C", root)
	out, err := command.Output()
	if err != nil {
		t.Fatalf("running make: %v", err)
	}
	for _, target := range []string{"up", "down", "test", "test-matrix", "verify", "lint", "generate", "bench"} {
		if !regexp.MustCompile(`(?m)^  ` + target + `\s+\S`).Match(out) {
			t.Errorf("make prints no help for %q:\n%s", target, out)
		}
	}
}

// TestFilesStartWithTheLicence checks every Go file that is not generated.
func TestFilesStartWithTheLicence(t *testing.T) {
	walk(t, ".go", func(name, text string) {
		if !strings.HasPrefix(text, "// Copyright The fleetgate Authors.\n// SPDX-License-Identifier: Apache-2.0\n") &&
			!strings.Contains(text, "DO NOT EDIT") {
			t.Errorf("%s does not start with the licence lines", name)
		}
	})
}

// testNames returns the names of Go tests and the texts of ginkgo specs.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	spec := regexp.MustCompile(`\b(?:It|Entry|Specify|DescribeTable)\("([^"]+)"`)
	names := map[string]bool{}
	walk(t, "_test.go", func(_, text string) {
		for _, match := range append(function.FindAllStringSubmatch(text, -1), spec.FindAllStringSubmatch(text, -1)...) {
			names[match[1]] = true
		}
	})
	if !names["TestConformanceNamesRealTests"] {
		t.Fatal("the search for tests does not find even this one")
	}
	return names
}

func walk(t *testing.T, suffix string, visit func(name, text string)) {
	t.Helper()
	walkIn(t, ".", suffix, visit)
}

// walkIn visits the files of a folder whose names have the suffix.
func walkIn(t *testing.T, dir, suffix string, visit func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".fleetgate"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, suffix):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		visit(path, string(data))
		return nil
	})
	if err != nil {
		t.Fatalf("walking the project: %v", err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
