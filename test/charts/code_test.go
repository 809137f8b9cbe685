// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	agentapp "fleetgate.io/fleetgate/cmd/agent/app"
	gatewayapp "fleetgate.io/fleetgate/cmd/gateway/app"
	"fleetgate.io/fleetgate/pkg/addon/agent/registration"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/serviceaccount/agent/impersonation"
	"fleetgate.io/fleetgate/pkg/telemetry/version"
)

func command(name string) *cobra.Command {
	if name == "agent" {
		return agentapp.NewCommand()
	}
	return gatewayapp.NewCommand()
}

// TestEveryFlagOfAChartExists reads the templates instead of their output, so that a flag behind a
// condition counts too.
func TestEveryFlagOfAChartExists(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^\s*- --([a-z][a-z0-9-]*)`)
	for _, name := range names() {
		known := map[string]bool{}
		whole := command(name)
		for _, of := range append(whole.Commands(), whole) {
			of.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
		found := 0
		templates(t, name, func(path, text string) {
			for _, match := range flag.FindAllStringSubmatch(text, -1) {
				found++
				if !known[match[1]] {
					t.Errorf("%s gives the flag --%s, which %s does not have", path, match[1], name)
				}
			}
		})
		const least = 4
		if found < least {
			t.Errorf("only %d flags are found in the templates of %s: this test looks for the wrong text", found, name)
		}
	}
}

// TestEveryFlagThatValuesNameExists checks the comments of values.yaml.
func TestEveryFlagThatValuesNameExists(t *testing.T) {
	flag := regexp.MustCompile(`--([a-z][a-z0-9-]+)`)
	for _, name := range names() {
		for _, match := range flag.FindAllStringSubmatch(read(t, filepath.Join(chart(name), "values.yaml")), -1) {
			if command(name).Flags().Lookup(match[1]) == nil {
				t.Errorf("the values of %s name the flag --%s, which does not exist", name, match[1])
			}
		}
	}
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// TestNamesInTheAgentsChartAreThoseOfTheAgent checks names of objects that the agent reads and
// writes, because its rights use resourceNames.
func TestNamesInTheAgentsChartAreThoseOfTheAgent(t *testing.T) {
	all := ""
	templates(t, "agent", func(_, text string) { all += text })
	for _, name := range []string{enroll.BootstrapSecret, enroll.KeySecret, enroll.CredentialSecret, registration.RecordSecret, impersonation.RoleName} {
		if !strings.Contains(all, name) {
			t.Errorf("the agent's chart does not name %s", name)
		}
	}
}

func TestChartsAreOfTheVersionOfTheSource(t *testing.T) {
	for _, name := range names() {
		var about struct {
			Name       string `json:"name"`
			Version    string `json:"version"`
			AppVersion string `json:"appVersion"`
		}
		unmarshal(t, read(t, chart(name)+"/Chart.yaml"), &about)
		if about.Name != name || about.AppVersion != version.Get() || "v"+about.Version != version.Get() {
			t.Errorf("chart %s is %+v, the source is %s", name, about, version.Get())
		}
	}
	if changes := read(t, root+"/CHANGELOG.md"); !strings.Contains(changes, "\n## "+version.Get()) {
		t.Errorf("CHANGELOG.md has no heading for %s", version.Get())
	}
}

func templates(t *testing.T, name string, visit func(path, text string)) {
	t.Helper()
	folder := chart(name) + "/templates"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		visit(entry.Name(), read(t, filepath.Join(folder, entry.Name())))
	}
}
