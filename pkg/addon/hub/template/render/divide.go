// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// filledBytes is how much of a ManifestWork is filled, as in Open Cluster Management. The rest of
// mostBytes is for manifests that become larger.
const filledBytes = mostBytes / 10 * 8

// Divide divides a spec between ManifestWorks, by their numbers. A manifest of one of the existing
// ManifestWorks stays there: moved to another, its object could be deleted in between. The error is a
// refusal.
func Divide(spec workv1.ManifestWorkSpec, existing map[int]workv1.ManifestWorkSpec) (map[int]workv1.ManifestWorkSpec, error) {
	numbers, err := numbersOf(existing)
	if err != nil {
		return nil, err
	}
	objects := make([]object, len(spec.Workload.Manifests))
	sizes := map[int]int{}
	for i, manifest := range spec.Workload.Manifests {
		if objects[i], err = objectOf(manifest); err != nil {
			return nil, err
		}
		if number, known := numbers[objects[i]]; known {
			if sizes[number] += len(manifest.Raw); sizes[number] > mostBytes {
				return nil, refuse("the manifests of the ManifestWork with suffix -deploy-%d have more than %d bytes now: make them smaller, or use several add-ons", number, mostBytes)
			}
		}
	}
	divided := map[int]workv1.ManifestWorkSpec{}
	for i, manifest := range spec.Workload.Manifests {
		number, known := numbers[objects[i]]
		if !known {
			for sizes[number] > 0 && sizes[number]+len(manifest.Raw) > filledBytes {
				number++
			}
			numbers[objects[i]] = number
			sizes[number] += len(manifest.Raw)
		}
		part, begun := divided[number]
		if !begun {
			part = spec
			part.Workload.Manifests = nil
		}
		part.Workload.Manifests = append(part.Workload.Manifests, manifest)
		divided[number] = part
	}
	return divided, nil
}

// object identifies the object of a manifest.
type object struct {
	kind            schema.GroupKind
	namespace, name string
}

func objectOf(manifest workv1.Manifest) (object, error) {
	of := metav1.PartialObjectMetadata{}
	if err := untrusted.UnmarshalJSON(manifest.Raw, untrusted.Object, &of); err != nil {
		return object{}, refuse("a manifest is invalid: %w", err)
	}
	return object{of.GroupVersionKind().GroupKind(), of.Namespace, of.Name}, nil
}

// numbersOf are the numbers of the ManifestWorks of objects. Of several the last one counts.
func numbersOf(works map[int]workv1.ManifestWorkSpec) (map[object]int, error) {
	numbers := map[object]int{}
	for number, work := range works {
		for _, manifest := range work.Workload.Manifests {
			of, err := objectOf(manifest)
			if err != nil {
				return nil, err
			}
			numbers[of] = max(number, numbers[of])
		}
	}
	return numbers, nil
}

func sizeOf(spec workv1.ManifestWorkSpec) int {
	size := 0
	for _, manifest := range spec.Workload.Manifests {
		size += len(manifest.Raw)
	}
	return size
}
