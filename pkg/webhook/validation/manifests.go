// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
)

// DefaultManifestLimit is how many bytes the manifests of a ManifestWork may have together
// where nobody says otherwise, as Open Cluster Management has it.
const DefaultManifestLimit = 500 << 10

// ValidateManifests returns the first thing that is wrong with the manifests of a
// ManifestWork, in the words that Open Cluster Management's users know, or nil. Limit is how
// many bytes they may have together.
func ValidateManifests(manifests []workv1.Manifest, limit int) error {
	size := 0
	for _, manifest := range manifests {
		size += len(manifest.Raw)
	}
	if size > limit {
		return fmt.Errorf("the size of manifests is %d bytes which exceeds the %d limit", size, limit)
	}
	type identity struct{ apiVersion, kind, namespace, name string }
	seen := make(map[identity]bool, len(manifests))
	for _, manifest := range manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest.Raw); err != nil {
			return err
		}
		switch {
		case object.GetName() == "":
			return errors.New("name must be set in manifest")
		case object.GetGenerateName() != "":
			return errors.New("generateName must not be set in manifest")
		}
		id := identity{object.GetAPIVersion(), object.GetKind(), object.GetNamespace(), object.GetName()}
		if seen[id] {
			return fmt.Errorf("duplicate manifest for resource %s/%s with resource type %s.%s", id.namespace, id.name, id.apiVersion, id.kind)
		}
		seen[id] = true
	}
	return nil
}
