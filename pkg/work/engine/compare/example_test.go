// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/work/engine/compare"
)

func ExampleObjects() {
	hub := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "1", "b": "2"}}}
	member := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "1", "b": "3"}}}
	for _, detail := range compare.Objects(hub, member) {
		fmt.Printf("%s: %s here, %s there\n", detail.Path, detail.ValueInHub, detail.ValueInMember)
	}
	// Output: /data/b: 2 here, 3 there
}
