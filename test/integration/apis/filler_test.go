// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// texts are tried in this order for a string with a pattern.
var texts = []string{"text", "Text", "30%", "90s", "500m", "0123456789abcdef", "https://example.test", "10.0.0.1", "work-agent-x", "/data/text", "example.com/signer", "deployments:name:container"}

// fill makes a value for a schema in which every field is set, where possible
// to something else than the default: a field that is lost and defaulted again
// must not look as if it had been kept.
func fill(schema apiextensionsv1.JSONSchemaProps) any {
	switch {
	case schema.XEmbeddedResource:
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "embedded"},
			"data":     map[string]any{"kept": "yes"},
		}
	case schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields && len(schema.Properties) == 0:
		return map[string]any{"kept": []any{"yes", int64(1), true}}
	case len(schema.Enum) > 0:
		return otherThanDefault(schema)
	case schema.XIntOrString:
		return fillText(schema)
	}
	switch schema.Type {
	case "object":
		return fillObject(schema)
	case "array":
		return []any{fill(*schema.Items.Schema)}
	case "string":
		return fillText(schema)
	case "integer":
		return fillInteger(schema)
	case "number":
		return 1.5
	case "boolean":
		return schema.Default == nil || string(schema.Default.Raw) == "false"
	}
	panic(fmt.Sprintf("no value for a schema of type %q", schema.Type))
}

func fillObject(schema apiextensionsv1.JSONSchemaProps) map[string]any {
	object := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		object[name] = fill(schema.Properties[name])
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		object["key"] = fill(*schema.AdditionalProperties.Schema)
	}
	return object
}

func otherThanDefault(schema apiextensionsv1.JSONSchemaProps) any {
	choice := schema.Enum[0]
	for _, value := range schema.Enum {
		if schema.Default == nil || string(value.Raw) != string(schema.Default.Raw) {
			choice = value
			break
		}
	}
	var value any
	if err := json.Unmarshal(choice.Raw, &value); err != nil {
		panic(err)
	}
	return value
}

func fillText(schema apiextensionsv1.JSONSchemaProps) any {
	switch schema.Format {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "byte":
		return "aGFzaA=="
	}
	if schema.XIntOrString && schema.Pattern == "" {
		return "30%"
	}
	pattern := regexp.MustCompile(schema.Pattern)
	for _, text := range texts {
		if pattern.MatchString(text) && (schema.MaxLength == nil || int64(len(text)) <= *schema.MaxLength) {
			return text
		}
	}
	panic(fmt.Sprintf("no text for the pattern %s", schema.Pattern))
}

func fillInteger(schema apiextensionsv1.JSONSchemaProps) any {
	value := int64(7)
	if schema.Default != nil {
		if err := json.Unmarshal(schema.Default.Raw, &value); err != nil {
			panic(err)
		}
		value++
	}
	if schema.Minimum != nil {
		value = max(value, int64(*schema.Minimum))
	}
	if schema.Maximum != nil {
		value = min(value, int64(*schema.Maximum))
	}
	return value
}

// schemaPaths are the paths of all fields of a schema.
func schemaPaths(schema apiextensionsv1.JSONSchemaProps) map[string]bool {
	paths := map[string]bool{}
	var walk func(path string, schema apiextensionsv1.JSONSchemaProps)
	walk = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		paths[path] = true
		for name, property := range schema.Properties {
			walk(path+"."+name, property)
		}
		if schema.Items != nil {
			walk(path+"[]", *schema.Items.Schema)
		}
		if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
			walk(path+".key", *schema.AdditionalProperties.Schema)
		}
	}
	walk("", schema)
	return paths
}

// valuePaths are the paths of all fields that a value sets.
func valuePaths(value any) map[string]bool {
	paths := map[string]bool{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		paths[path] = true
		switch v := value.(type) {
		case map[string]any:
			for name, field := range v {
				walk(path+"."+name, field)
			}
		case []any:
			for _, item := range v {
				walk(path+"[]", item)
			}
		}
	}
	walk("", value)
	return paths
}
