// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// named returns all images that a chart uses.
func named(t *testing.T, name string, args ...string) []string {
	t.Helper()
	rendered, err := render(t, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, found := range regexp.MustCompile(`(?m)(?:image: |agentImage: )"?([^\s"]+)`).FindAllStringSubmatch(rendered, -1) {
		all = append(all, found[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestWithoutAWayOutNoImageComesFromElsewhere compares docs/getting-started/airgap.md with the charts: the page
// lists all images, and its commands replace each of them.
func TestWithoutAWayOutNoImageComesFromElsewhere(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "getting-started", "airgap.md"))
	_, values := registrationValues(t)
	needed := map[string][]string{
		"gateway": {"--set=hubURL=https://hub.example.org:6443"},
		"agent":   {"--values=" + values},
	}
	var listed, used []string
	for _, found := range regexp.MustCompile("image `([^`]+):<version>`").FindAllStringSubmatch(page, -1) {
		listed = append(listed, found[1])
	}
	slices.Sort(listed)
	for _, chart := range names() {
		for _, image := range named(t, chart, needed[chart]...) {
			repository, _, _ := strings.Cut(image, ":")
			used = append(used, repository)
		}
		_, command, found := strings.Cut(page, "helm install "+releaseOf(chart)+" ")
		if !found {
			t.Fatalf("docs/getting-started/airgap.md does not install %s", chart)
		}
		command, _, _ = strings.Cut(command, "```")
		args := needed[chart]
		for _, flag := range regexp.MustCompile(`--set (\S+)`).FindAllStringSubmatch(command, -1) {
			args = append(args, "--set="+flag[1])
		}
		for _, image := range named(t, chart, args...) {
			if !strings.HasPrefix(image, "registry.example.org/fleetgate/") {
				t.Errorf("as docs/getting-started/airgap.md installs %s, it runs %s", chart, image)
			}
		}
	}
	slices.Sort(used)
	if diff := cmp.Diff(listed, slices.Compact(used)); diff != "" {
		t.Errorf("docs/getting-started/airgap.md lists other images than charts run (-listed +run):\n%s", diff)
	}
}
