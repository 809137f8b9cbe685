// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A metric is one of ours, as declared in the code.
type metric struct {
	name, kind, help string
	labels           []string
	agent            bool
}

// exported reads every metric declaration from the source: prometheus.New...(...Opts{Name, Help},
// labels), and calls of functions that only wrap it.
func exported(t *testing.T) []metric {
	t.Helper()
	var all []metric
	for name, files := range packages(t) {
		p := &metricPackage{constants: constantsIn(files), makers: map[string]string{}}
		for _, file := range files {
			p.findMakers(file)
		}
		for _, file := range files {
			for _, m := range p.find(file) {
				m.agent = strings.Contains(m.name, "_agent_") || strings.HasPrefix(name, "cmd/agent")
				all = append(all, m)
			}
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	const least = 30
	if len(all) < least {
		t.Fatalf("only %d metrics are found, at least %d are known: the source is not read as it is written", len(all), least)
	}
	return all
}

// packages are the shipped files by package, because two packages may have constants of one name.
func packages(t *testing.T) map[string][]*ast.File {
	t.Helper()
	all := map[string][]*ast.File{}
	for _, dir := range []string{"cmd", "pkg"} {
		walkIn(t, dir, ".go", func(path, _ string) {
			if strings.HasSuffix(path, "_test.go") {
				return
			}
			folder := strings.TrimPrefix(filepath.Dir(path), root+"/")
			all[folder] = append(all[folder], parse(t, path))
		})
	}
	return all
}

type metricPackage struct {
	constants map[string]string
	// makers are functions that create a metric from name and help, by kind.
	makers map[string]string
}

func constantsIn(files []*ast.File) map[string]string {
	constants := map[string]string{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			declaration, ok := n.(*ast.GenDecl)
			if !ok || declaration.Tok != token.CONST {
				return true
			}
			for _, spec := range declaration.Specs {
				values, ok := spec.(*ast.ValueSpec)
				for i := 0; ok && i < min(len(values.Names), len(values.Values)); i++ {
					if text, ok := constant(values.Values[i]); ok {
						constants[values.Names[i].Name] = text
					}
				}
			}
			return false
		})
	}
	return constants
}

// text evaluates literals, constants and their sums.
func (p *metricPackage) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		text, ok := p.constants[e.Name]
		return text, ok
	case *ast.BinaryExpr:
		left, ok := p.text(e.X)
		right, alsoOK := p.text(e.Y)
		return left + right, ok && alsoOK
	}
	return constant(e)
}

// made returns the kind and the options of a metric that a call creates.
func made(n ast.Node) (kind string, options *ast.CompositeLit, call *ast.CallExpr) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return "", nil, nil
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || fmt.Sprint(selector.X) != "prometheus" {
		return "", nil, nil
	}
	kind, found := strings.CutPrefix(selector.Sel.Name, "New")
	options, isLiteral := call.Args[0].(*ast.CompositeLit)
	if !found || !isLiteral {
		return "", nil, nil
	}
	return strings.ToLower(strings.TrimSuffix(kind, "Vec")), options, call
}

func field(options *ast.CompositeLit, name string) ast.Expr {
	for _, element := range options.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok && fmt.Sprint(pair.Key) == name {
			return pair.Value
		}
	}
	return nil
}

func (p *metricPackage) findMakers(file *ast.File) {
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Body == nil {
			continue
		}
		ast.Inspect(function.Body, func(n ast.Node) bool {
			if kind, options, _ := made(n); options != nil {
				if name, ok := field(options, "Name").(*ast.Ident); ok && name.Name == "name" {
					p.makers[function.Name.Name] = kind
				}
			}
			return true
		})
	}
}

func (p *metricPackage) find(file *ast.File) []metric {
	var found []metric
	ast.Inspect(file, func(n ast.Node) bool {
		if kind, options, call := made(n); options != nil {
			name, ok := p.text(field(options, "Name"))
			help, alsoOK := p.text(field(options, "Help"))
			if ok && alsoOK {
				m := metric{name: name, kind: kind, help: help}
				if len(call.Args) > 1 {
					if list, isList := call.Args[1].(*ast.CompositeLit); isList {
						m.labels = p.texts(list.Elts)
					}
				}
				found = append(found, m)
			}
		}
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 1 {
			if kind := p.makers[fmt.Sprint(call.Fun)]; kind != "" {
				name, ok := p.text(call.Args[0])
				help, alsoOK := p.text(call.Args[1])
				if ok && alsoOK {
					found = append(found, metric{name: name, kind: kind, help: help, labels: p.texts(call.Args[2:])})
				}
			}
		}
		return true
	})
	return found
}

func (p *metricPackage) texts(list []ast.Expr) []string {
	var all []string
	for _, e := range list {
		if text, ok := p.text(e); ok {
			all = append(all, text)
		}
	}
	return all
}

// upstreamPrefix begins the metrics that have the names and meanings of upstream's Konnectivity.
const upstreamPrefix = "konnectivity_network_proxy_"

// metricsTable returns the table of docs/reference/metrics.md. Metrics of upstream are only named, in one row
// for each program.
func metricsTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| metric | of | kind | labels | says |\n|---|---|---|---|---|\n")
	upstream := map[string][]string{}
	for _, m := range exported(t) {
		of := "gateway"
		if m.agent {
			of = "agent"
		}
		if strings.HasPrefix(m.name, upstreamPrefix) {
			upstream[of] = append(upstream[of], "`"+m.name+"`")
			continue
		}
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, of, m.kind, labels, m.help)
	}
	for _, of := range slices.Sorted(maps.Keys(upstream)) {
		fmt.Fprintf(&b, "| %s | %s | | | As upstream's Konnectivity. |\n", strings.Join(upstream[of], ", "), of)
	}
	return b.String()
}

// others are the prefixes of metrics that libraries and the hub's API server export.
func others() []string {
	return []string{"controller_runtime_", "workqueue_", "rest_client_", "leader_election_", "process_", "go_", "aggregator_"}
}

// TestAlertsAndDashboardAskForMetricsThatExist fails for a metric or label that is not exported,
// because such an alert never fires.
func TestAlertsAndDashboardAskForMetricsThatExist(t *testing.T) {
	labelsOf := map[string][]string{}
	for _, m := range exported(t) {
		labelsOf[m.name] = m.labels
		if m.kind == "histogram" {
			labelsOf[m.name+"_bucket"] = append(slices.Clone(m.labels), "le")
		}
	}
	name, selector := regexp.MustCompile(`\b[a-z]+(?:_[a-z0-9]+)+\b`), regexp.MustCompile(`\b((?:fleetgate|fleet_workload)_[a-z_]+)\{([^}]*)\}`)
	asked := 0
	for _, expression := range expressions(t) {
		for _, match := range name.FindAllString(withoutTexts(expression), -1) {
			if strings.HasPrefix(match, "fleetgate_") || strings.HasPrefix(match, "fleet_workload_") {
				asked++
				if _, ok := labelsOf[match]; !ok {
					t.Errorf("%q asks for %s, which nothing exports", expression, match)
				}
				continue
			}
			isOthers := slices.ContainsFunc(others(), func(prefix string) bool { return strings.HasPrefix(match, prefix) })
			if !isOthers && match != "histogram_quantile" && match != "label_values" {
				t.Errorf("%q asks for %s: neither we nor a library that we use exports it", expression, match)
			}
		}
		for _, match := range selector.FindAllStringSubmatch(expression, -1) {
			for _, label := range regexp.MustCompile(`([a-zA-Z_]+)\s*[=!]`).FindAllStringSubmatch(match[2], -1) {
				if !slices.Contains(labelsOf[match[1]], label[1]) {
					t.Errorf("%q asks %s for the label %s, which it has not", expression, match[1], label[1])
				}
			}
		}
	}
	const least = 15
	if asked < least {
		t.Errorf("only %d metrics of ours are asked for: this reads the wrong files", asked)
	}
}

// withoutTexts removes quoted texts and Grafana's variables.
func withoutTexts(expression string) string {
	return regexp.MustCompile(`"[^"]*"|\$[a-z_]+`).ReplaceAllString(expression, "")
}

// expressions returns those of the alerts and of the dashboard.
func expressions(t *testing.T) []string {
	t.Helper()
	var all []string
	alerts := read(t, "charts/gateway/files/alerts.yaml")
	for _, match := range regexp.MustCompile(`(?m)^    expr: (\|\n(?:      .*\n)+|.*)`).FindAllStringSubmatch(alerts, -1) {
		all = append(all, match[1])
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct {
				Expr string `json:"expr"`
			} `json:"targets"`
		} `json:"panels"`
	}
	if err := json.Unmarshal([]byte(read(t, "charts/gateway/files/dashboard.json")), &dashboard); err != nil {
		t.Fatalf("the dashboard is not JSON: %v", err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}
