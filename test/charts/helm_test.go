// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// update writes generated files instead of comparing them.
var update = flag.Bool("update", false, "write what is made from charts and code")

func names() []string { return []string{"gateway", "agent"} }

func chart(name string) string { return filepath.Join(root, "charts", name) }

// helm runs Helm and returns its output; the error has standard error.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path := filepath.Join(root, ".fleetgate", "bin", "helm")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not there: run make tools", path)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	// Ignore the user's own Helm configuration.
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=")
	out, err := command.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), errors.New(string(exit.Stderr))
	}
	return string(out), err
}

// render renders the chart with the values.
func render(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	return helm(t, append([]string{"template", releaseOf(name), chart(name), "--namespace=fleet-system"}, args...)...)
}

// releaseOf is the release name in the documents.
func releaseOf(name string) string {
	if name == "agent" {
		return "fleet-agent"
	}
	return name
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// compare compares a file with its expected contents, or writes it.
func compare(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, read(t, path)); diff != "" {
		t.Errorf("%s is old, run make update (-want +got):\n%s", strings.TrimPrefix(path, root+"/"), diff)
	}
}

// TestHelmFindsNothingWrongWithTheCharts lints each chart alone and with each of its examples.
func TestHelmFindsNothingWrongWithTheCharts(t *testing.T) {
	for _, name := range names() {
		examples, err := filepath.Glob(filepath.Join(chart(name), "ci", "*-values.yaml"))
		if err != nil || len(examples) == 0 {
			t.Fatalf("the chart %s has no examples in ci/: %v", name, err)
		}
		runs := [][]string{{"lint", "--strict", chart(name)}}
		for _, example := range examples {
			runs = append(runs, []string{"lint", "--strict", chart(name), "--values=" + example}, []string{"template", "x-agent", chart(name), "--values=" + example})
		}
		for _, args := range runs {
			out, err := helm(t, args...)
			if err != nil || strings.Contains(out, "[WARNING]") || strings.Contains(out, "recommended") {
				t.Errorf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		}
	}
}
