// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"fleetgate.io/fleetgate/pkg/placement/helmchart"
)

// schemaFile is the chart's schema of its values.
const schemaFile = "values.schema.json"

// nothing loads no schema. Helm would fetch references from files and hosts that the gateway can reach
// and its user cannot.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s: a schema may only refer to itself", url)
}

// checkSchema validates the values of a chart, and of its subcharts, by their schemas.
func checkSchema(c *chart.Chart, values map[string]any) error {
	if len(c.Schema) > 0 {
		if err := validate(c.Schema, values); err != nil {
			return &helmchart.Problem{Where: c.ChartFullPath() + "/" + schemaFile, What: err.Error()}
		}
	}
	for _, inner := range c.Dependencies() {
		if given, ok := values[inner.Name()].(map[string]any); ok {
			if err := checkSchema(inner, given); err != nil {
				return err
			}
		}
	}
	return nil
}

func validate(text []byte, values map[string]any) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	const url = "file:///" + schemaFile
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})
	if err := compiler.AddResource(url, schema); err != nil {
		return err
	}
	compiled, err := compiler.Compile(url)
	if err != nil {
		return err
	}
	return compiled.Validate(values)
}
