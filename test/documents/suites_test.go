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

// TestEverySuiteRunsWhereItIsDocumented compares the table in CONTRIBUTING.md with the suites, and with
// the Makefile.
func TestEverySuiteRunsWhereItIsDocumented(t *testing.T) {
	documented := map[string][]string{} // By when .ci/run runs them.
	for _, row := range tables(section(t, read(t, "CONTRIBUTING.md"), "## Where each test runs")) {
		if text, ok := strings.CutPrefix(row[0], "suites "); ok {
			text, _, _ = strings.Cut(text, ", and")
			documented[row[2]] = inBackticks(text)
		}
	}
	folders, err := os.ReadDir(filepath.Join(root, "test", "integration"))
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	first, last := fields(t, "Makefile", `(?m)^SUBJECTS := (.*)$`), fields(t, "Makefile", `(?m)^FLEETWIDE := (.*)$`)
	for _, folder := range folders {
		if !slices.Contains(first, folder.Name()) && !slices.Contains(last, folder.Name()) {
			rest = append(rest, folder.Name())
		}
	}
	if diff := cmp.Diff(map[string][]string{"yes": first, "if each begins by minute 66": rest, "if they begin by minute 72": last}, documented); diff != "" {
		t.Errorf("CONTRIBUTING.md names other suites than test/integration and Makefile (-them +CONTRIBUTING.md):\n%s", diff)
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
