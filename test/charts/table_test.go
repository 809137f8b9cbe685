// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
)

// A value is a value of a chart, as documented in values.yaml.
type value struct{ path, standard, meaning string }

// valuesOf parses values.yaml. It fails for a value without a comment, unless all values below it
// have one.
func valuesOf(t *testing.T, name string) []value {
	t.Helper()
	var document yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(read(t, chart(name)+"/values.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	return valuesIn(t, document.Content[0], "")
}

func valuesIn(t *testing.T, parent *yamlv3.Node, prefix string) []value {
	t.Helper()
	var all []value
	for i := 0; i < len(parent.Content); i += 2 {
		key, child := parent.Content[i], parent.Content[i+1]
		path := prefix + key.Value
		isMap := child.Kind == yamlv3.MappingNode && len(child.Content) > 0
		switch meaning := commentOf(key); {
		case isMap && (meaning == "" || child.Content[0].HeadComment != ""):
			all = append(all, valuesIn(t, child, path+".")...)
		case meaning == "":
			t.Errorf("values.yaml says nothing of %s: put a comment above it", path)
		default:
			all = append(all, value{path, standardOf(t, child), meaning})
		}
	}
	return all
}

// commentOf returns the last paragraph above a key; section titles are further up.
func commentOf(key *yamlv3.Node) string {
	paragraphs := strings.Split(strings.TrimSpace(key.HeadComment), "\n\n")
	var words []string
	for _, line := range strings.Split(paragraphs[len(paragraphs)-1], "\n") {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(line, "#")))
	}
	return strings.Join(words, " ")
}

// standardOf returns the default as JSON, or an empty string.
func standardOf(t *testing.T, node *yamlv3.Node) string {
	t.Helper()
	var content any
	if err := node.Decode(&content); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains([]string{`""`, "[]", "{}", "null"}, string(text)) {
		return ""
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

// TestTablesOfValuesAreThoseOfTheCharts compares the charts' READMEs with the charts' values.
func TestTablesOfValuesAreThoseOfTheCharts(t *testing.T) {
	for _, name := range names() {
		readme := chart(name) + "/README.md"
		compare(t, readme, between(t, read(t, readme), "<!-- values: "+name+".", "<!-- end of values -->", tableOf(t, name)))
	}
}

// tableOf returns the table of a chart's values.
func tableOf(t *testing.T, name string) string {
	t.Helper()
	var table strings.Builder
	table.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, v := range valuesOf(t, name) {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.path, v.standard, v.meaning)
	}
	return table.String()
}

// between replaces the text between a marker's line and its end.
func between(t *testing.T, text, begin, end, content string) string {
	t.Helper()
	before, rest, ok := strings.Cut(text, begin)
	marker, rest, alsoOK := strings.Cut(rest, "\n")
	_, after, ended := strings.Cut(rest, end)
	if !ok || !alsoOK || !ended {
		t.Fatalf("there is no section between %q and %q", begin, end)
	}
	return before + begin + marker + "\n" + content + end + after
}

// TestSchemasKnowEveryValueAndNoOther compares values.yaml with values.schema.json at every depth
// at which the schema lists properties.
func TestSchemasKnowEveryValueAndNoOther(t *testing.T) {
	for _, name := range names() {
		var standard, schema map[string]any
		unmarshal(t, read(t, chart(name)+"/values.yaml"), &standard)
		if err := json.Unmarshal([]byte(read(t, chart(name)+"/values.schema.json")), &schema); err != nil {
			t.Fatal(err)
		}
		standard["global"] = map[string]any{} // Helm's own
		if name == "gateway" {
			standard["authorizeInner"] = false // A previous name. Remove after the next release.
		}
		compareKeys(t, name, standard, schema)
	}
}

func compareKeys(t *testing.T, path string, standard, schema map[string]any) {
	t.Helper()
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return
	}
	if schema["additionalProperties"] == nil {
		t.Errorf("the schema of %s does not reject misspelled values (additionalProperties)", path)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(standard)), slices.Sorted(maps.Keys(properties))); diff != "" {
		t.Errorf("the schema of %s lists other values (-values.yaml +schema):\n%s", path, diff)
	}
	for key, property := range properties {
		inner, isMap := standard[key].(map[string]any)
		if of, ok := property.(map[string]any); ok && isMap {
			compareKeys(t, path+"."+key, inner, of)
		}
	}
}
