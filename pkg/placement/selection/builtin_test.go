// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

var update = flag.Bool("update", false, "write testdata/fields.txt; classify its new fields")

// fieldsFile lists every field of every built-in kind that can be placed, two levels deep, with its
// owner: the author, or the hub. "author" includes fields that only the API server defaults, which is
// harmless.
const fieldsFile = "testdata/fields.txt"

// A new field of a new Kubernetes version fails here until somebody has found out whether a controller
// or the API server writes it. The test does not know the writer. It does not cover annotations and
// fields below the second level.
func TestRules_ClassifyEveryFieldOfBuiltInKinds(t *testing.T) {
	written, err := os.ReadFile(fieldsFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	classes := map[string]string{}
	for line := range strings.Lines(string(written)) {
		if field, class, ok := strings.Cut(strings.TrimSpace(line), " = "); ok {
			classes[field] = class
		}
	}
	fields := builtInFields()
	var lines []string
	for _, field := range fields {
		want := "author"
		if ofTheHub(field) {
			want = "hub"
		}
		switch class, known := classes[field]; {
		case !known && !*update:
			t.Errorf("%s is new: find out whether a controller or the API server sets it, give it a rule if so, and run go test -update", field)
		case known && class != want:
			t.Errorf("%s is classified as %s, but by the rules the owner is %s", field, class, want)
		}
		lines = append(lines, field+" = "+want)
	}
	if *update {
		if err := os.WriteFile(fieldsFile, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for field := range classes {
		if !slices.Contains(fields, field) {
			t.Errorf("%s no longer exists: run go test -update", field)
		}
	}
}

// builtInFields have the form "group/Kind: field" or "group/Kind: spec.field".
func builtInFields() []string {
	scheme := clientgoscheme.Scheme
	object := reflect.TypeFor[metav1.Object]()
	var all []string
	done := map[schema.GroupKind]bool{}
	for _, gv := range scheme.PrioritizedVersionsAllGroups() {
		for kind, goType := range scheme.KnownTypes(gv) {
			id := schema.GroupKind{Group: gv.Group, Kind: kind}
			if done[id] || !reflect.PointerTo(goType).Implements(object) || !KindPropagates(id) {
				continue
			}
			done[id] = true
			for _, field := range jsonFields(goType) {
				all = append(all, id.String()+": "+field.name)
				if field.name == "spec" {
					for _, inner := range jsonFields(field.of) {
						all = append(all, id.String()+": spec."+inner.name)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

type jsonField struct {
	name string
	of   reflect.Type
}

func jsonFields(of reflect.Type) []jsonField {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return nil
	}
	var fields []jsonField
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && name != "metadata" {
			fields = append(fields, jsonField{name, of.Field(i).Type})
		}
	}
	return fields
}

// alsoCut are fields that a rule for another field removes.
var alsoCut = map[string]string{"spec.clusterIPs": "spec.clusterIP", "spec.healthCheckNodePort": "spec.ports[].nodePort", "spec.ipFamilyPolicy": "spec.ipFamilies", "spec.ports": "spec.ports[].nodePort"}

func ofTheHub(field string) bool {
	kind, name, _ := strings.Cut(field, ": ")
	if other, ok := alsoCut[name]; ok {
		name = other
	}
	return slices.ContainsFunc(rules, func(r rule) bool {
		return r.field == name && (len(r.kinds) == 0 || r.covers(schema.ParseGroupKind(kind)))
	})
}

func TestRules_AreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/placed-resources.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Objects and fields that stay on the hub")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := strings.Split(section, "\n")
	for _, r := range rules {
		named := slices.ContainsFunc(rows, func(row string) bool {
			of := "| all |"
			if len(r.kinds) > 0 {
				of = "| " + r.kinds[0].Kind + " |"
			}
			return strings.HasPrefix(row, of) && strings.Contains(row, r.field)
		})
		if !named {
			t.Errorf("the table has no row for %s of %v", r.field, r.kinds)
		}
	}
}
