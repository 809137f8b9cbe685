// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEverySuiteRunsWhereItIsDocumented compares the table in CONTRIBUTING.md with the suites, with the
// Makefile and with .ci/run.
func TestEverySuiteRunsWhereItIsDocumented(t *testing.T) {
	documented := map[string][]string{} // By whether make test and .ci/run run them.
	for _, row := range tables(section(t, read(t, "CONTRIBUTING.md"), "## Where each test runs")) {
		if text, ok := strings.CutPrefix(row[0], "suites "); ok {
			text, _, _ = strings.Cut(text, ", and")
			in := row[1] + ", " + regexp.MustCompile(`^\w+`).FindString(row[2])
			documented[in] = append(documented[in], inBackticks(text)...)
		}
	}
	folders, err := os.ReadDir(filepath.Join(root, "test", "integration"))
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	first, last := fields(t, "Makefile", `(?m)^SUBJECTS := (.*)$`), fields(t, ".ci/run", `(?m)^late=\((.*)\)$`)
	for _, folder := range folders {
		if !slices.Contains(first, folder.Name()) && !slices.Contains(last, folder.Name()) {
			rest = append(rest, folder.Name())
		}
	}
	if diff := cmp.Diff(map[string][]string{"yes, yes": first, "no, yes": rest, "no, if": last}, documented); diff != "" {
		t.Errorf("CONTRIBUTING.md names other suites than test/integration, Makefile and .ci/run (-them +CONTRIBUTING.md):\n%s", diff)
	}
	if !regexp.MustCompile(`(?m)^make test$`).MatchString(read(t, ".ci/run")) {
		t.Error(".ci/run does not run make test")
	}
}

// fields are the words of a list in a file.
func fields(t *testing.T, file, pattern string) []string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, file))
	if found == nil {
		t.Fatalf("%s has no line %s", file, pattern)
	}
	return strings.Fields(found[1])
}
