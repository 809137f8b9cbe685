// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"strings"
	"testing"
)

// TestReleasingIsDocumentedAsItIs compares hack/RELEASING.md with the release code: messages,
// statement types, and make variables.
func TestReleasingIsDocumentedAsItIs(t *testing.T) {
	var texts []string
	walkIn(t, "hack/release", ".go", func(name, _ string) {
		if !strings.HasSuffix(name, "_test.go") {
			texts = append(texts, textsIn(parse(t, name))...)
		}
	})
	said, makefile := strings.Join(texts, "\n"), read(t, "Makefile")
	compared := map[string]int{}
	for _, row := range tables(section(t, read(t, "hack/RELEASING.md"), "## make release")) {
		for _, name := range inBackticks(row[0]) {
			if name == strings.ToUpper(name) {
				compared["variables"]++
				if !strings.Contains(makefile, "\n"+name+" ?=") {
					t.Errorf("hack/RELEASING.md explains the variable %s, which the Makefile does not have", name)
				}
				continue
			}
			compared["messages"]++
			if !strings.Contains(said, name) {
				t.Errorf("hack/RELEASING.md explains %q, which nothing says", name)
			}
		}
		for _, kind := range inBackticks(row[1]) {
			if strings.HasPrefix(kind, "https://") {
				compared["types"]++
				if !strings.Contains(said, kind) {
					t.Errorf("hack/RELEASING.md says that there are statements of type %s, and there are none", kind)
				}
			}
		}
	}
	if compared["variables"] < 5 || compared["messages"] < 5 || compared["types"] < 2 {
		t.Errorf("compared only %v: this reads the wrong tables", compared)
	}
	if document := read(t, "hack/RELEASING.md"); !strings.Contains(document, "`"+buildTypeIn(t, said)+"`") {
		t.Error("hack/RELEASING.md does not say what the build type of a release is")
	}
}

// buildTypeIn finds it in the string constants of the code.
func buildTypeIn(t *testing.T, said string) string {
	t.Helper()
	for line := range strings.Lines(said) {
		if kind := strings.TrimSpace(line); strings.HasPrefix(kind, "https://fleetgate.io/release/") {
			return kind
		}
	}
	t.Fatal("no text of hack/release is a build type")
	return ""
}
