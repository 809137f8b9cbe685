// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Unnamed lists the fields of a schema, and the values that a field may have of a few, that no
// example has, as .a.b and .a.b=value. What is within the fields of apart is left out.
func Unnamed(schema apiextensionsv1.JSONSchemaProps, examples []map[string]any, apart ...string) []string {
	named := map[string]bool{}
	for _, example := range examples {
		name(named, "", example)
	}
	var missing []string
	for _, path := range fieldsOf(schema, "") {
		within := slices.ContainsFunc(apart, func(field string) bool { return strings.HasPrefix(path, field) })
		if !named[path] && !within {
			missing = append(missing, path)
		}
	}
	slices.Sort(missing)
	return missing
}

// name notes the paths that lead to a value, and the value if it is a text.
func name(named map[string]bool, path string, value any) {
	named[path] = true
	switch value := value.(type) {
	case map[string]any:
		for field, of := range value {
			name(named, path+"."+field, of)
		}
	case []any:
		for _, item := range value {
			name(named, path, item)
		}
	case string:
		named[path+"="+value] = true
	}
}

// fieldsOf are the paths of a schema.
func fieldsOf(schema apiextensionsv1.JSONSchemaProps, path string) []string {
	var paths []string
	if path != "" {
		paths = append(paths, path)
	}
	for _, value := range schema.Enum {
		paths = append(paths, fmt.Sprintf("%s=%s", path, strings.Trim(string(value.Raw), `"`)))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		paths = append(paths, fieldsOf(*schema.Items.Schema, path)...)
	}
	for field, of := range schema.Properties {
		paths = append(paths, fieldsOf(of, path+"."+field)...)
	}
	return paths
}
