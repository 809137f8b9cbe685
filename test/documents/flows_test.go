// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// packagesOfAFlow is how many packages somebody who follows a flow may have to visit.
const packagesOfAFlow = 8

var packagePath = regexp.MustCompile("`((?:pkg|cmd)/[a-z0-9/._-]+)`")

// TestNoFlowLeadsThroughMoreThanEightPackages holds docs/architecture.md to flows that can be
// read: one that grows longer is two.
func TestNoFlowLeadsThroughMoreThanEightPackages(t *testing.T) {
	_, flows, found := strings.Cut(read(t, "docs/architecture.md"), "\n## Flows\n")
	if !found {
		t.Fatal("docs/architecture.md has no section of flows")
	}
	flows, _, _ = strings.Cut(flows, "\n## ")
	parts := strings.Split(flows, "\n### ")[1:]
	if len(parts) < 10 {
		t.Fatalf("found %d flows, and there are more", len(parts))
	}
	for _, flow := range parts {
		name, text, _ := strings.Cut(flow, "\n")
		packages := map[string]bool{}
		for _, match := range packagePath.FindAllStringSubmatch(text, -1) {
			named := match[1]
			if path.Ext(named) != "" {
				named = path.Dir(named)
			}
			packages[named] = true
		}
		if len(packages) > packagesOfAFlow {
			t.Errorf("%q leads through %d packages, and may through %d: %v", name, len(packages), packagesOfAFlow, packages)
		}
	}
}
