// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Bundled is a chart that is part of the program. It is rendered like any other: only the rendering
// process contains Helm.
type Bundled struct {
	Engine Engine
	// Package is the chart, as helm package writes it.
	Package []byte
}

// Render returns the objects of a release, for no member in particular. Values are a JSON object;
// they may contain credentials, so no error quotes them. An error is a Problem if they do not fit
// the chart.
func (b *Bundled) Render(ctx context.Context, name, namespace string, values json.RawMessage) ([]*unstructured.Unstructured, error) {
	rendered, err := b.Engine.Render(ctx, &Release{
		Name: name, Namespace: namespace, Package: b.Package, Values: values, Confidential: true,
	})
	if err != nil {
		return nil, err
	}
	objects := make([]*unstructured.Unstructured, 0, len(rendered.Objects))
	for _, o := range rendered.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(o.JSON); err != nil {
			return nil, fmt.Errorf("reading what %s renders to: %w", o.Template, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
