// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/test/support/chartpack"
)

var update = flag.Bool("update", false, "write the golden files")

const podCIDRs = "infrastructure.fleetgate.io/pod-cidrs"

func member(properties map[string]string) helmchart.Member {
	return helmchart.Member{
		Name: "west-1", Labels: map[string]string{"cni": "pod-network", "region": "west"},
		Annotations: map[string]string{"example.com/http-proxy": "http://10.0.109.153:3128"}, Properties: properties,
	}
}

func folder(t *testing.T, name string) []byte {
	t.Helper()
	packed, err := chartpack.Folder(filepath.Join("../../../../examples/addons", name))
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func files(t *testing.T, files map[string]string) *helmchart.Release {
	t.Helper()
	packed, err := chartpack.Files(files)
	if err != nil {
		t.Fatal(err)
	}
	return &helmchart.Release{Name: "addon", Namespace: "addons", Package: packed, Member: member(nil)}
}

// text is the content of the golden files: each object after the file that it is from.
func text(t *testing.T, rendered *helmchart.Rendered) string {
	t.Helper()
	if rendered.Problem != nil {
		t.Fatalf("rendering: %v", rendered.Problem)
	}
	var out strings.Builder
	for _, o := range rendered.Objects {
		written, err := yaml.JSONToYAML(o.JSON)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "# %s\n%s---\n", o.Template, written)
	}
	return out.String()
}

func TestRender_ExamplesMatchGoldenFiles(t *testing.T) {
	const fromProperties = `pools: {{ splitList "," (required "the member has no pod CIDRs" (index .Values.global.fleetgate.member.properties "` + podCIDRs + `")) | toJson }}`
	cases := map[string]*helmchart.Release{
		"pod-network-dual-stack": {
			Name: "pod-network", Namespace: "network-system", Package: folder(t, "pod-network"), ValuesTemplate: fromProperties,
			Member: member(map[string]string{podCIDRs: "10.1.0.0/16,fd00:1::/48"}),
		},
		"reporter-behind-a-proxy": {
			Name: "reporter", Namespace: "addons", Package: folder(t, "reporter"), Member: member(nil),
			Values: json.RawMessage(`{"proxy":{"httpProxy":"http://10.0.109.153:3128","httpsProxy":"https://10.0.109.153:3129","noProxy":".cluster.local,.svc,10.96.0.1","caBundle":"-----BEGIN CERTIFICATE-----\n"}}`),
		},
	}
	for name, release := range cases {
		t.Run(name, func(t *testing.T) {
			got := text(t, Render(release))
			golden := filepath.Join("testdata", name+".yaml")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("run with -update and look at the difference (-want +got):\n%s", diff)
			}
			if again := text(t, Render(release)); again != got {
				t.Errorf("rendered twice it gives something else:\n%s", cmp.Diff(got, again))
			}
		})
	}
}

func TestRender_PoolsAreTheMembersPodCIDRs(t *testing.T) {
	const own = `pools: {{ splitList "," (index .Values.global.fleetgate.member.properties "` + podCIDRs + `" | default "") | toJson }}`
	cases := map[string]struct {
		cidrs   string
		want    []string
		problem string
	}{
		"IPv4":                    {cidrs: "192.168.0.0/16", want: []string{"192.168.0.0/16"}},
		"IPv6":                    {cidrs: "2001:1234:5678:9a40::/58", want: []string{"2001:1234:5678:9a40::/58"}},
		"dual stack":              {cidrs: "10.244.0.0/16,2001:1234:5678:9a40::/58", want: []string{"10.244.0.0/16", "2001:1234:5678:9a40::/58"}},
		"IPv6 first":              {cidrs: "fd00::/48,10.0.0.0/8", want: []string{"fd00::/48", "10.0.0.0/8"}},
		"none":                    {cidrs: "", problem: "pod-network/values.schema.json"},
		"no network":              {cidrs: "west", problem: "pod-network/values.schema.json"},
		"more than there can be":  {cidrs: "10.0.0.0/8,11.0.0.0/8,12.0.0.0/8", problem: "pod-network/values.schema.json"},
		"something for the shell": {cidrs: "10.0.0.0/8\nimage: evil", problem: "pod-network/values.schema.json"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rendered := Render(&helmchart.Release{
				Name: "n", Namespace: "n", Package: folder(t, "pod-network"), ValuesTemplate: own, Member: member(map[string]string{podCIDRs: tc.cidrs}),
			})
			if tc.problem != "" {
				if rendered.Problem == nil || rendered.Problem.Where != tc.problem || rendered.Problem.Chart != "pod-network 0.1.0" {
					t.Errorf("problem = %v, want one of %s", rendered.Problem, tc.problem)
				}
				return
			}
			var got []string
			for _, o := range rendered.Objects {
				var pool struct {
					Kind string
					Spec struct{ CIDR string }
				}
				if err := json.Unmarshal(o.JSON, &pool); err == nil && pool.Kind == "IPPool" {
					got = append(got, pool.Spec.CIDR)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("pools (-want +got), problem %v:\n%s", rendered.Problem, diff)
			}
		})
	}
}

func TestRender_ValuesOverrideInOrder(t *testing.T) {
	r := files(t, map[string]string{
		"values.yaml":         "a: chart\nb: chart\nc: chart\nport: 8080\n",
		"templates/all.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {all: {{ list .Values.a .Values.b .Values.c .Values.port .Values.global.fleetgate.member.labels.region .Release.Name .Release.Namespace .Capabilities.KubeVersion.Version | toJson | quote }}}\n",
		"templates/NOTES.txt": "{{ fail \"never read\" }}",
		"templates/_help.tpl": "{{ define \"x\" }}{{ end }}",
	})
	r.Values, r.ValuesTemplate, r.KubernetesVersion = json.RawMessage(`{"b":"values","c":"values"}`), "c: {{ .Values.b }} of {{ .Release.Name }}", "v1.31.2"
	got := text(t, Render(r))
	if want := `["chart","values","values of addon",8080,"west","addon","addons","v1.31.2"]`; !strings.Contains(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestRender_Hooks(t *testing.T) {
	hook := func(kind, name, hooks string) string {
		return fmt.Sprintf("---\napiVersion: v1\nkind: %s\nmetadata: {name: %s, annotations: {helm.sh/hook: %q}}\n", kind, name, hooks)
	}
	r := files(t, map[string]string{"templates/all.yaml": hook("ServiceAccount", "before", "pre-install,pre-upgrade") + hook("Job", "migrate", "post-upgrade") +
		hook("Pod", "test", "test") + hook("Job", "clean", "pre-delete") + hook("Job", "back", "post-rollback") + hook("Job", "unknown", "sometimes") + "---\n# nothing\n"})
	got := text(t, Render(r))
	for want, there := range map[string]bool{"name: before": true, "name: migrate": true, "name: test": false, "name: clean": false, "name: back": false, "name: unknown": false} {
		if strings.Contains(got, want) != there {
			t.Errorf("%q is there: %t, want %t:\n%s", want, !there, there, got)
		}
	}
	if strings.Count(got, "fleetgate.io/immutable-change: Recreate") != 1 {
		t.Errorf("a changed Job of a hook could not run again:\n%s", got)
	}
}

func TestRender_Subcharts(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {member: {{ .Values.global.fleetgate.member.name }}, size: {{ .Values.size | quote }}}\n"
	all := map[string]string{
		"Chart.yaml":                    "apiVersion: v2\nname: test\nversion: 0.1.0\ndependencies: [{name: inner, version: 1.0.0, condition: inner.enabled}]\n",
		"values.yaml":                   "inner: {size: 3}\nsize: 1\n",
		"templates/a.yaml":              object,
		"charts/inner/Chart.yaml":       "apiVersion: v2\nname: inner\nversion: 1.0.0\n",
		"charts/inner/templates/a.yaml": object,
	}
	r := files(t, all)
	got := text(t, Render(r))
	for _, want := range []string{"name: inner", "size: \"3\"", "member: west-1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	r.Values = json.RawMessage(`{"inner":{"enabled":false}}`)
	if got := text(t, Render(r)); strings.Contains(got, "name: inner") {
		t.Errorf("a chart that is switched off is rendered:\n%s", got)
	}
	delete(all, "charts/inner/Chart.yaml")
	delete(all, "charts/inner/templates/a.yaml")
	if p := Render(files(t, all)).Problem; p == nil || !strings.Contains(p.What, "helm dependency update") {
		t.Errorf("a chart without a chart that it needs is rendered: %v", p)
	}
}

func TestRender_ProblemsNameChartAndLine(t *testing.T) {
	one := func(template string) map[string]string { return map[string]string{"templates/a.yaml": template} }
	cases := map[string]struct {
		files  map[string]string
		values string
		tpl    string
		want   []string
	}{
		"a value that is required":     {files: one("\n\n{{ required \"give it a size\" .Values.size }}"), want: []string{"test 0.1.0", "test/templates/a.yaml:3", "give it a size"}},
		"a template that does not end": {files: one("{{ if }}"), want: []string{"test/templates/a.yaml:1", "missing value for if"}},
		"a value of another kind":      {files: one("\n{{ index .Values.list 3 }}"), values: `{"list":[1]}`, want: []string{"test/templates/a.yaml:2", "index out of range"}},
		"no YAML":                      {files: one("a: [\n"), want: []string{"test/templates/a.yaml, document 1", "did not find expected"}},
		"no object":                    {files: one("a: b\n"), want: []string{"test/templates/a.yaml, document 1", "no object"}},
		"values that are no YAML":      {files: one(""), tpl: "a: [", want: []string{"values.tpl makes no YAML"}},
		"values that fail":             {files: one(""), tpl: "\n{{ fail \"no\" }}", want: []string{"values.tpl:2", "no"}},
		"a library":                    {files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: l\nversion: 1.0.0\ntype: library\n"}, want: []string{"library"}},
		"another Kubernetes":           {files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: l\nversion: 1.0.0\nkubeVersion: \">=9.0.0\"\n"}, want: []string{"it is for Kubernetes >=9.0.0"}},
		"no chart":                     {files: map[string]string{"Chart.yaml": "a: b"}, want: []string{"chart.tgz"}},
		"a member that is not a map":   {files: one(""), values: `{"global":{"fleetgate":3}}`, want: []string{"fleetgate is not a map"}},
		"a schema from elsewhere":      {files: map[string]string{"values.schema.json": `{"$ref":"http://127.0.0.1:1/x"}`}, want: []string{"may only refer to itself"}},
		"a schema from a file":         {files: map[string]string{"values.schema.json": `{"$ref":"file:///etc/passwd"}`}, want: []string{"may only refer to itself"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := files(t, tc.files)
			r.Values, r.ValuesTemplate = json.RawMessage(tc.values), tc.tpl
			rendered := Render(r)
			if rendered.Problem == nil || len(rendered.Objects) > 0 {
				t.Fatal("it was rendered")
			}
			for _, want := range tc.want {
				if !strings.Contains(rendered.Problem.Error(), want) {
					t.Errorf("%q does not say %q", rendered.Problem.Error(), want)
				}
			}
		})
	}
}

func TestRender_ProblemsOfSecretsQuoteNothing(t *testing.T) {
	for name, template := range map[string]string{
		"fail": "\n{{ fail .Values.password }}", "tpl": "\n{{ tpl .Values.password . }}", "YAML": "{{ .Values.password }}", "schema": "",
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{"templates/a.yaml": template}
			if name == "schema" {
				all["values.schema.json"] = `{"properties":{"password":{"enum":["x"],"pattern":"^y"}}}`
			}
			r := files(t, all)
			r.Confidential, r.Values = true, json.RawMessage(`{"password":"{{ hunter2"}`)
			rendered := Render(r)
			if rendered.Problem == nil {
				t.Fatal("it was rendered")
			}
			if said := rendered.Problem.Error(); strings.Contains(said, "hunter2") || !strings.Contains(said, "test/") {
				t.Errorf("problem = %q", said)
			}
		})
	}
}

func TestRender_TemplatesSeeOnlyTheirInputs(t *testing.T) {
	t.Setenv("SECRET", "hunter2")
	inTemplate := func(call string) *helmchart.Release {
		return files(t, map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: {{ " + call + " | quote }}}\n"})
	}
	for _, call := range []string{`env "SECRET"`, `expandenv "$SECRET"`, `getHostByName "localhost"`} {
		if rendered := Render(inTemplate(call)); rendered.Problem == nil {
			t.Errorf("%s gives %s", call, rendered.Objects[0].JSON)
		}
	}
	for call, want := range map[string]string{
		`lookup "v1" "Secret" "kube-system" "" | len`: `"0"`, `.Files.Get "/etc/passwd" | len`: `"0"`, `.Files.Get "../../../etc/passwd" | len`: `"0"`,
	} {
		if got := text(t, Render(inTemplate(call))); !strings.Contains(got, want) {
			t.Errorf("%s gives %s", call, got)
		}
	}
}

func TestRender_RefusesRandomFunctions(t *testing.T) {
	r := files(t, map[string]string{"templates/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: x}
data: {keys: {{ keys .Values.map | join "," | quote }}, values: {{ values .Values.map | join "," | quote }}}
`})
	r.Values = json.RawMessage(`{"map":{"d":4,"b":2,"a":1,"c":3,"e":5,"f":6}}`)
	if got := text(t, Render(r)); !strings.Contains(got, "keys: a,b,c,d,e,f") || !strings.Contains(got, "values: 1,2,3,4,5,6") {
		t.Errorf("keys and values are not sorted:\n%s", got)
	}
	for reason, names := range refusedFunctions() {
		for _, name := range names {
			p := Render(files(t, map[string]string{"templates/a.yaml": "{{ " + name + " }}"})).Problem
			if p == nil || !strings.Contains(p.What, name+" "+reason) {
				t.Errorf("%s is not refused: %v", name, p)
			}
		}
	}
}

// New functions of a newer Helm have to be reviewed: is their result a function of their arguments?
func TestFunctions_AreAllReviewed(t *testing.T) {
	known, err := os.ReadFile("testdata/functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	own := functions()
	var unknown []string
	for name := range sprig.TxtFuncMap() {
		if _, replaced := own[name]; !replaced && !slices.Contains(strings.Fields(string(known)), name) {
			unknown = append(unknown, name)
		}
	}
	if slices.Sort(unknown); len(unknown) > 0 {
		t.Errorf("refuse these functions, or write them into testdata/functions.txt:\n%s", strings.Join(unknown, "\n"))
	}
	for name := range own {
		if _, there := sprig.TxtFuncMap()[name]; !there {
			t.Errorf("there is no function %s to override", name)
		}
	}
}

func FuzzPackagesAreReadOrRefused(f *testing.F) {
	packed, err := chartpack.Files(map[string]string{"templates/a.yaml": "{{ .Values }}", "values.yaml": "a: b"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Add([]byte("\x1f\x8b\x08"))
	f.Fuzz(func(t *testing.T, packed []byte) {
		rendered := Render(&helmchart.Release{Name: "a", Namespace: "a", Package: packed})
		if rendered.Problem == nil && rendered.Chart == "" {
			t.Error("neither rendered nor refused")
		}
	})
}
