// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const keyPrefix = "fleetgate.io/"

// TestEveryKeyOfOursIsListed compares labels, annotations and finalizers of the code with
// docs/reference/api.md, in both directions.
func TestEveryKeyOfOursIsListed(t *testing.T) {
	want := map[string]bool{}
	for _, file := range products(t) {
		for _, text := range textsIn(file) {
			if strings.HasPrefix(text, keyPrefix) {
				want[text] = true
			}
		}
	}
	got := map[string]bool{}
	for _, row := range tables(read(t, "docs/reference/api.md")) {
		for _, key := range inBackticks(row[0]) {
			if strings.HasPrefix(key, keyPrefix) {
				got[key] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("docs/reference/api.md lists other keys than the code has (-code +document):\n%s", diff)
	}
}

// versionsOf returns the stored version first, then the others, the most stable first.
func versionsOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	var stored string
	var others []string
	for _, version := range crd.Spec.Versions {
		switch {
		case version.Storage:
			stored = version.Name
		case version.Served:
			others = append(others, version.Name)
		}
	}
	slices.SortFunc(others, func(a, b string) int { return len(a) - len(b) })
	return strings.Join(append([]string{stored}, others...), ", ")
}

// TestEveryMetricIsListed compares our metrics with docs/reference/metrics.md.
func TestEveryMetricIsListed(t *testing.T) {
	metric := regexp.MustCompile(`^fleetgate_[a-z_]+$`)
	want := map[string]bool{}
	for _, file := range products(t) {
		for _, text := range textsIn(file) {
			if metric.MatchString(text) {
				want[text] = true
			}
		}
	}
	got := map[string]bool{}
	for _, text := range inBackticks(read(t, "docs/reference/metrics.md")) {
		if metric.MatchString(text) {
			got[text] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("docs/reference/metrics.md lists other metrics than the code has (-code +document):\n%s", diff)
	}
}

// TestEveryReasonIsExplained compares condition reasons of the code with docs/reference/reasons.md, in both
// directions. Reasons are constants that are named so, or an agent's for not being enrolled.
func TestEveryReasonIsExplained(t *testing.T) {
	constant := regexp.MustCompile(`(?m)^\t(?:[A-Za-z]*[rR]eason[A-Z]\w*|[A-Z]\w+ Reason)(?: \w+)? *= "([A-Za-z]+)"$`)
	single := regexp.MustCompile(`(?m)^const [rR]eason[A-Z]\w* = "([A-Za-z]+)"$`)
	enrolling := regexp.MustCompile(`(?m)^\t[A-Z]\w+ = "([A-Za-z]+)"$`)
	want := map[string]bool{}
	walkIn(t, "pkg", ".go", func(path, text string) {
		all := append(constant.FindAllStringSubmatch(text, -1), single.FindAllStringSubmatch(text, -1)...)
		if strings.HasSuffix(path, "enroll/refusals.go") {
			all = append(all, enrolling.FindAllStringSubmatch(text, -1)...)
		}
		for _, match := range all {
			want[match[1]] = true
		}
	})
	const least = 220
	if len(want) < least {
		t.Fatalf("The code has %d reasons, at least %d are known: this test looks for the wrong constants", len(want), least)
	}
	got := map[string]bool{}
	for _, row := range tables(read(t, "docs/reference/reasons.md")) {
		for _, reason := range inBackticks(row[0]) {
			got[reason] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("docs/reference/reasons.md explains other reasons than the code has (-code +document):\n%s", diff)
	}
}

// TestEveryProbeIsListed finds the checks that commands add to their probes.
func TestEveryProbeIsListed(t *testing.T) {
	probes := section(t, read(t, "docs/reference/operations.md"), "## Probes")
	added, found := regexp.MustCompile(`Add(?:Readyz|Healthz)Check\("([^"]+)"|Checker\{"([^"]+)"`), 0
	walkIn(t, "cmd", ".go", func(name, text string) {
		for _, match := range added.FindAllStringSubmatch(text, -1) {
			found++
			if check := match[1] + match[2]; !strings.Contains(probes, "| `"+check+"` |") {
				t.Errorf("%s adds the check %q, which docs/reference/operations.md does not list", name, check)
			}
		}
	})
	if found == 0 {
		t.Error("no command adds a check: this test looks for the wrong call")
	}
}

// refusals returns the messages of the ValidatingAdmissionPolicies.
func refusals(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "pkg/webhook/policies/*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding the policies: %v", err)
	}
	var texts []string
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal(bytes.Split(content, []byte("\n---\n"))[0], policy); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, rule := range policy.Spec.Validations {
			texts = append(texts, rule.Message, rule.MessageExpression)
		}
	}
	return texts
}

// TestMessagesAreOurs fails for a message in docs/how-to/runbook.md that is not in the code.
func TestMessagesAreOurs(t *testing.T) {
	var texts []string
	for _, file := range products(t) {
		texts = append(texts, textsIn(file)...)
	}
	all := strings.Join(append(texts, refusals(t)...), "\n")
	rows := tables(section(t, read(t, "docs/how-to/runbook.md"), "## Messages"))
	if len(rows) == 0 {
		t.Fatal("docs/how-to/runbook.md has no table of messages")
	}
	for _, row := range rows {
		for _, message := range inBackticks(row[0]) {
			if !strings.Contains(all, message) {
				t.Errorf("docs/how-to/runbook.md explains %q, which is not in the code", message)
			}
		}
	}
}
