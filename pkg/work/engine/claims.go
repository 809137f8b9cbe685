// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
)

// withClass completes the finding with the StorageClass that the object may depend on. If the agent
// cannot read the class, or there is none, the finding stays: a claim without its class is not
// bound either. Health expressions of the manifest are the author's rule, so they stay too.
func (e *Engine) withClass(ctx context.Context, it Item, object *unstructured.Unstructured, found availability.Finding) availability.Finding {
	name := availability.ClassOf(object)
	if name == "" || e.HealthAnnotations.AreOn(it.object) {
		return found
	}
	class, err := e.member.Resource(storagev1.SchemeGroupVersion.WithResource("storageclasses")).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		//lint:ignore nilerr The finding from the claim itself is the fallback.
		return found
	}
	return availability.WithClass(found, class)
}
