// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

func ExampleOf() {
	deployment := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"updatedReplicas": int64(1)}}}
	found := availability.Of(deployment)
	fmt.Println(found.State, found.Message)
	// Output: ManifestNotAvailableYet Not all replicas run the latest template yet
}
