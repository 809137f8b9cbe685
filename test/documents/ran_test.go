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

// TestConformanceTestsRan fails if a suite ran without a spec that docs/conformance.md or testdata/ocm-specs.csv
// names. FLEETGATE_RAN is the folder with the records of the suites that ran.
func TestConformanceTestsRan(t *testing.T) {
	folder := os.Getenv("FLEETGATE_RAN")
	if folder == "" {
		t.Skip("needs records of suites: .ci/run sets FLEETGATE_RAN")
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.specs"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d records in %s: %v", len(paths), folder, err)
	}
	records := map[string]string{}
	for _, path := range paths {
		record, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		records[strings.TrimSuffix(filepath.Base(path), ".specs")] = string(record)
	}
	named := inBackticks(read(t, "docs/conformance.md"))
	for _, row := range specRows(t) {
		named = append(named, row.tests...)
	}
	for _, missing := range notRun(suitesOfSpecs(t), named, records) {
		t.Errorf("conformance names %q, which its suite did not run", missing)
	}
}

// suitesOfSpecs returns the folders of each spec, except those that only make test-matrix runs.
func suitesOfSpecs(t *testing.T) map[string][]string {
	t.Helper()
	matrix := regexp.MustCompile(`(?m)^var _ = Describe\(.*Label\("matrix"\)`)
	spec := regexp.MustCompile(`\b(?:It|Entry|Specify)\("([^"]+)"(.*)`)
	wholeSuite := regexp.MustCompile(`(?m)^\tRunSpecs\(.*"matrix"`)
	suites, ofMatrix := map[string][]string{}, map[string]bool{}
	walkIn(t, "test", "_test.go", func(path, text string) {
		if wholeSuite.MatchString(text) {
			ofMatrix[filepath.Base(filepath.Dir(path))] = true
		}
		if matrix.MatchString(text) {
			return
		}
		for _, match := range spec.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(match[2], `Label("matrix")`) {
				suites[match[1]] = append(suites[match[1]], filepath.Base(filepath.Dir(path)))
			}
		}
	})
	for name, of := range suites {
		suites[name] = slices.DeleteFunc(of, func(suite string) bool { return ofMatrix[suite] })
	}
	return suites
}

// notRun returns the named specs that are missing in the record of a suite. A suite without a record, or that was
// skipped as a whole, says nothing.
func notRun(suites map[string][]string, named []string, records map[string]string) []string {
	var missing []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(named))) {
		for _, suite := range suites[name] {
			record, exists := records[suite]
			if exists && !strings.Contains(record, "\nSkipped: ") && !regexp.MustCompile(`(?m)^.* It passed in .*`+regexp.QuoteMeta(name)+`$`).MatchString(record) {
				missing = append(missing, suite+": "+name)
			}
		}
	}
	return missing
}

func TestNotRun_FindsSpecsThatTheirSuiteLeftOut(t *testing.T) {
	suites := map[string][]string{"joins": {"registration"}, "leaves": {"registration"}, "places": {"placement"}, "guards": {"immutability"}}
	records := map[string]string{
		"registration": "   9.0 s  Registration\n   4.0 s  It passed in 1 attempts: A member joins\n   0.1 s  It skipped in 1 attempts: A member leaves\n",
		"immutability": "   0.1 s  Immutability\nSkipped: 9 specs of \"Immutability\": no schemas\n",
	}
	named := []string{"joins", "leaves", "leaves", "places", "guards", "TestUnit"}
	if diff := cmp.Diff([]string{"registration: leaves"}, notRun(suites, named, records)); diff != "" {
		t.Errorf("missing specs (-want +got):\n%s", diff)
	}
}
