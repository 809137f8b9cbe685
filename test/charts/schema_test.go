// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"encoding/json"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
)

// TestSchemasSayOfEachValueWhatItIsFor compares the schema's descriptions, which editors show, with
// values.yaml.
func TestSchemasSayOfEachValueWhatItIsFor(t *testing.T) {
	for _, name := range names() {
		path := chart(name) + "/values.schema.json"
		var document yamlv3.Node // yaml.Node keeps the order of keys, and reads JSON.
		if err := yamlv3.Unmarshal([]byte(read(t, path)), &document); err != nil {
			t.Fatal(err)
		}
		for _, v := range valuesOf(t, name) {
			if !describe(document.Content[0], strings.Split(v.path, "."), strings.ReplaceAll(v.meaning, "`", "")) {
				t.Errorf("the schema of chart %s has no place for what %s means", name, v.path)
			}
		}
		var text strings.Builder
		writeJSON(t, &text, document.Content[0], "\n")
		compare(t, path, text.String()+"\n")
	}
}

// describe sets the description of the value at a path. A value whose fields are Kubernetes' own
// has one description for all.
func describe(schema *yamlv3.Node, path []string, meaning string) bool {
	if len(path) == 0 {
		if of := memberOf(schema, "description"); of != nil {
			of.SetString(meaning)
			return true
		}
		var key, text yamlv3.Node
		key.SetString("description")
		text.SetString(meaning)
		schema.Content = append([]*yamlv3.Node{&key, &text}, schema.Content...)
		return true
	}
	properties := memberOf(schema, "properties")
	if properties == nil {
		return false
	}
	of := memberOf(properties, path[0])
	return of != nil && describe(of, path[1:], meaning)
}

// memberOf returns the value of an object's key, or nil.
func memberOf(object *yamlv3.Node, key string) *yamlv3.Node {
	for i := 0; i+1 < len(object.Content); i += 2 {
		if object.Content[i].Value == key {
			return object.Content[i+1]
		}
	}
	return nil
}

// writeJSON writes a node as JSON with its keys in order.
func writeJSON(t *testing.T, to *strings.Builder, node *yamlv3.Node, newline string) {
	t.Helper()
	inner := newline + "  "
	begin, end, step := "[", "]", 1
	switch node.Kind {
	case yamlv3.MappingNode:
		begin, end, step = "{", "}", 2
	case yamlv3.SequenceNode:
	default:
		var content any
		if err := node.Decode(&content); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(content); err != nil {
			t.Fatal(err)
		}
		to.WriteString(strings.TrimSuffix(text.String(), "\n"))
		return
	}
	to.WriteString(begin)
	for i := 0; i < len(node.Content); i += step {
		if i > 0 {
			to.WriteString(",")
		}
		to.WriteString(inner)
		if step == 2 {
			writeJSON(t, to, node.Content[i], inner)
			to.WriteString(": ")
		}
		writeJSON(t, to, node.Content[i+step-1], inner)
	}
	if len(node.Content) > 0 {
		to.WriteString(newline)
	}
	to.WriteString(end)
}
