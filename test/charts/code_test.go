// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	agentapp "fleetgate.io/fleetgate/cmd/agent/app"
	gatewayapp "fleetgate.io/fleetgate/cmd/gateway/app"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/enroll"
	"fleetgate.io/fleetgate/pkg/serviceaccount/impersonation"
	"fleetgate.io/fleetgate/pkg/version"
)

func command(name string) *cobra.Command {
	if name == "agent" {
		return agentapp.NewCommand()
	}
	return gatewayapp.NewCommand()
}

// TestEveryFlagOfAChartExists reads the templates, not what they render: a flag behind a
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
		const least = 8
		if found < least {
			t.Errorf("only %d flags are found in the templates of %s: this test looks for the wrong text", found, name)
		}
	}
}

// TestEveryFlagThatValuesNameExists follows the comments.
func TestEveryFlagThatValuesNameExists(t *testing.T) {
	flag := regexp.MustCompile(`--([a-z][a-z0-9-]+)`)
	for _, name := range names() {
		for _, match := range flag.FindAllStringSubmatch(read(t, filepath.Join(chart(name), "values.yaml")), -1) {
			if command(name).Flags().Lookup(match[1]) == nil {
				t.Errorf("the values of %s name the flag --%s, which there is not", name, match[1])
			}
		}
	}
}

// TestTheGatewaysRightsAreOfOneSource keeps the chart's ClusterRole that of the fleet with
// which everything else is tested.
func TestTheGatewaysRightsAreOfOneSource(t *testing.T) {
	fleets := strings.Split(read(t, root+"/test/fleet/gateway-rbac.yaml"), "\n---\n")
	if len(fleets) != 4 {
		t.Fatal("test/fleet/gateway-rbac.yaml is not two ClusterRoles with their bindings any more")
	}
	rendered, err := render(t, "gateway", hubAccess, "--show-only=templates/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	charts := map[string]rbacv1.ClusterRole{}
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		role := rbacv1.ClusterRole{}
		if unmarshal(t, document, &role); role.Kind == "ClusterRole" {
			charts[role.Name] = role
		}
	}
	for file, of := range map[string]struct{ fleets, role string }{
		"rules.yaml":     {fleets[0], "fleetgate:fleet-system:gateway"},
		"placeable.yaml": {fleets[2], "fleetgate:fleet-system:gateway:placeable"},
	} {
		_, rules, _ := strings.Cut(of.fleets, "\nrules:\n")
		compare(t, chart("gateway")+"/files/"+file, strings.TrimSpace(rules)+"\n")
		var fleet rbacv1.ClusterRole
		unmarshal(t, of.fleets, &fleet)
		if diff := cmp.Diff(fleet.Rules, charts[of.role].Rules); diff != "" || len(fleet.Rules) == 0 {
			t.Errorf("ClusterRole %s of the chart is another one (-fleet +chart):\n%s", of.role, diff)
		}
	}
}

// TestANarrowedGatewayReadsWhatIsLabelled: beside its own kinds only what is gathered by label.
func TestANarrowedGatewayReadsWhatIsLabelled(t *testing.T) {
	rendered, err := render(t, "gateway", hubAccess, "--show-only=templates/rbac.yaml", "--set=rbac.placeable=aggregated")
	if err != nil {
		t.Fatal(err)
	}
	gathered := 0
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		role := rbacv1.ClusterRole{}
		unmarshal(t, document, &role)
		if role.Kind == "ClusterRole" && role.AggregationRule != nil {
			gathered++
			label := role.AggregationRule.ClusterRoleSelectors[0].MatchLabels[placementv1beta1.PlaceableLabel]
			if role.Name != "fleetgate-placeable" || label != "true" || len(role.Rules) != 0 {
				t.Errorf("ClusterRole %s gathers by %v", role.Name, role.AggregationRule)
			}
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.APIGroups, "*") {
				t.Errorf("ClusterRole %s allows %v in all groups", role.Name, rule.Verbs)
			}
		}
	}
	if gathered != 1 || !strings.Contains(rendered, "kind: ClusterRole\n  name: fleetgate-placeable") {
		t.Errorf("%d ClusterRoles are gathered, or nobody is bound to it", gathered)
	}
}

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

// TestNamesInTheAgentsChartAreThoseOfTheAgent looks for what the agent reads and writes by
// a fixed name: its rights go by these names.
func TestNamesInTheAgentsChartAreThoseOfTheAgent(t *testing.T) {
	all := ""
	templates(t, "agent", func(_, text string) { all += text })
	for _, name := range []string{enroll.BootstrapSecret, enroll.KeySecret, enroll.CredentialSecret, impersonation.RoleName} {
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
