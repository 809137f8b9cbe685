// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// packagesOfAFlow bounds the packages that a reader of one flow has to visit.
const packagesOfAFlow = 8

var packagePath = regexp.MustCompile("`((?:pkg|cmd)/[a-z0-9/._-]+)`")

// TestNoFlowLeadsThroughMoreThanEightPackages keeps the flows of docs/architecture.md short. Split
// a longer one.
func TestNoFlowLeadsThroughMoreThanEightPackages(t *testing.T) {
	_, flows, found := strings.Cut(read(t, "docs/architecture.md"), "\n## Flows\n")
	if !found {
		t.Fatal("docs/architecture.md has no section of flows")
	}
	flows, _, _ = strings.Cut(flows, "\n## ")
	parts := strings.Split(flows, "\n* **")[1:]
	if len(parts) < 10 {
		t.Fatalf("found only %d flows", len(parts))
	}
	for _, flow := range parts {
		name, text, _ := strings.Cut(flow, ".** ")
		packages := map[string]bool{}
		for _, match := range packagePath.FindAllStringSubmatch(text, -1) {
			named := match[1]
			if path.Ext(named) != "" {
				named = path.Dir(named)
			}
			packages[named] = true
		}
		if len(packages) > packagesOfAFlow {
			t.Errorf("%q leads through %d packages, at most %d are allowed: %v", name, len(packages), packagesOfAFlow, packages)
		}
	}
}
