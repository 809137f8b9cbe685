// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustercel

import (
	"fmt"
	"strings"
	"testing"
)

func fields(region string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "c1", "labels": map[string]any{"version": "1.14.3", "region": region}, "annotations": map[string]any{"limits": `{"gpu": 4, "zones": ["a", "b"]}`}},
		"status": map[string]any{
			"version":       map[string]any{"kubernetes": "v1.30.6"},
			"allocatable":   map[string]any{"memory": "64Gi"},
			"clusterClaims": []any{map[string]any{"name": "region", "value": region}, map[string]any{"name": "nodes", "value": "5"}},
			"conditions":    []any{map[string]any{"type": "ManagedClusterConditionAvailable", "status": "True"}},
		},
	}
}

func cluster(region string) *Cluster {
	return NewCluster(fields(region), func(sheet string) ([]Score, bool) {
		return []Score{{"cpu", 3}, {"memory", -4}}, sheet == "usage"
	})
}

func compile(t *testing.T, expressions ...string) *Selector {
	t.Helper()
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	selector, err := compiler.Compile(expressions)
	if err != nil {
		t.Fatal(err)
	}
	return selector
}

func TestMatches_SupportsUpstreamFunctions(t *testing.T) {
	for text, want := range map[string]bool{
		`managedCluster.metadata.name == "c1"`:                                                                           true,
		`managedCluster.metadata.labels["region"] in ["eu", "us"]`:                                                       true,
		`managedCluster.metadata.labels.region.matches("^u")`:                                                            false,
		`has(managedCluster.metadata.labels.env)`:                                                                        false,
		`managedCluster.status.clusterClaims.exists(c, c.name == "nodes" && int(c.value) > 4)`:                           true,
		`semver(managedCluster.metadata.labels["version"]).isGreaterThan(semver("1.14.2"))`:                              true,
		`semver(managedCluster.status.version.kubernetes.replace("v", "")).isLessThan(semver("1.31.0"))`:                 true,
		`quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity("32Gi"))`:                             true,
		`managedCluster.scores("usage").filter(s, s.name == "cpu").all(s, s.value > 2)`:                                  true,
		`managedCluster.scores("usage").exists(s, s.name == "memory" && s.value > 0)`:                                    false,
		`managedCluster.metadata.annotations["limits"].parseJSON().gpu >= 4.0`:                                           true,
		`"b" in managedCluster.metadata.annotations["limits"].parseJSON().zones`:                                         true,
		`ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.0.0.1")`:                                      true,
		`[1, 2].isSorted() && url("https://a.b").getHost() == "a.b" && !format.dns1123Label().validate("x").hasValue()`:  true,
		`managedCluster.status.conditions.exists(c, c.type == "ManagedClusterConditionAvailable" && c.status == "True")`: true,
	} {
		got, err := compile(t, text).Matches(cluster("eu"))
		if err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", text, got, err, want)
		}
	}
	both := compile(t, `true`, `managedCluster.metadata.labels.region == "us"`)
	if got, err := both.Matches(cluster("eu")); got || err != nil {
		t.Errorf("one of two that is false: %t, %v", got, err)
	}
}

func TestMatches_FailsIfEvaluationFails(t *testing.T) {
	for text, want := range map[string]string{
		`managedCluster.metadata.labels.env == "prod"`: "no such key: env",
		`managedCluster.metadata.name`:                 "expected bool result, got string",
		`managedCluster.scores("none").size() > 0`:     `the cluster has no AddOnPlacementScore "none"`,
		`{"a": 1}.scores("usage").size() > 0`:          "only managedCluster has scores",
		`"{".parseJSON().a == 1`:                       "unexpected end of JSON input",
		`[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f >= 0))))))`: "cost limit exceeded",
	} {
		got, err := compile(t, text).Matches(cluster("eu"))
		if got || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %t, %v, want an error with %q", text, got, err, want)
		}
	}
}

func TestCompile_ReportsInvalidExpressions(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"managedCluster.", "cluster.metadata", "managedCluster.metadata.name + 1 ==", strings.Repeat(" ", 20<<10) + "true"} {
		if _, err := compiler.Compile([]string{"true", text}); err == nil || !strings.HasPrefix(err.Error(), "compilation failed: ") {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestDependencies_FindReadFields(t *testing.T) {
	for text, tc := range map[string]struct {
		paths  string
		sheets string
	}{
		`true`: {"[]", "[] false"},
		`managedCluster.metadata.labels["region"] == managedCluster.metadata.name`:           {"[[metadata labels region] [metadata name]]", "[] false"},
		`managedCluster.status.clusterClaims.exists(c, c.name == "a")`:                       {"[[status clusterClaims]]", "[] false"},
		`has(managedCluster.metadata.labels.env) && [managedCluster.spec].size() > 0`:        {"[[metadata labels env] [spec]]", "[] false"},
		`{"a": managedCluster.status.version}["a"].kubernetes == "x"`:                        {"[[status version]]", "[] false"},
		`managedCluster.metadata.labels[managedCluster.metadata.name] == "x"`:                {"[[metadata labels] [metadata name]]", "[] false"},
		`managedCluster.scores("usage").size() > 0 || managedCluster.scores("b").size() > 0`: {"[]", "[usage b] false"},
		`managedCluster.scores(managedCluster.metadata.name).size() > 0`:                     {"[[metadata name]]", "[] true"},
		`managedCluster.size() > 0`: {"[[]]", "[] false"},
	} {
		dependencies := compile(t, text).Dependencies()
		if got := fmt.Sprint(dependencies.paths); got != tc.paths {
			t.Errorf("%s depends on %s, want %s", text, got, tc.paths)
		}
		if got := fmt.Sprint(dependencies.sheets, dependencies.allSheets); got != tc.sheets {
			t.Errorf("%s depends on scores %s, want %s", text, got, tc.sheets)
		}
	}
}

func TestDependencies_IgnoreOtherFields(t *testing.T) {
	byName, byRegion, byAll := compile(t, `managedCluster.metadata.name == "c1"`).Dependencies(), compile(t, `managedCluster.metadata.labels.region == "eu"`).Dependencies(), compile(t, `managedCluster.size() > 0`).Dependencies()
	eu, us := fields("eu"), fields("us")
	if byName.Differ(eu, us) || !byRegion.Differ(eu, us) || !byAll.Differ(eu, us) || byAll.Differ(eu, fields("eu")) {
		t.Errorf("name %t, region %t, all %t, all of the same %t", byName.Differ(eu, us), byRegion.Differ(eu, us), byAll.Differ(eu, us), byAll.Differ(eu, fields("eu")))
	}
	byName.Merge(byRegion)
	if !byName.Differ(eu, us) || byName.IsEmpty() {
		t.Error("merged dependencies lack those of one expression")
	}
	delete(us["metadata"].(map[string]any), "labels")
	if !byRegion.Differ(eu, us) {
		t.Error("a field that is gone does not differ")
	}
}
