// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	workv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
)

// specHashKey is an annotation that ManifestWorks have only in the cache. An API server stores no
// annotation with such a name: a hash from the API would hide a changed spec.
const specHashKey = "//spec-hash"

const (
	// worksBySet finds the ManifestWorks of a set by the value of their label.
	worksBySet = "replicaset"
	// setsByPlacement finds the sets that name a Placement.
	setsByPlacement = "placement"
)

// CacheOptions makes the manager's cache drop the manifests and their conditions from
// ManifestWorks, because only their clusters need them.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&workv1.ManifestWork{}: {Transform: forget}}
}

// forget replaces a ManifestWork's spec by its hash and its deleteOption.
func forget(object any) (any, error) {
	work, ok := object.(*workv1.ManifestWork)
	if !ok {
		return object, nil
	}
	if _, done := work.Annotations[specHashKey]; done {
		return work, nil
	}
	specHash, err := hash.JSON(&work.Spec)
	if err != nil {
		specHash = "" // Then it differs from the desired one, and is written again.
	}
	if work.Annotations == nil {
		work.Annotations = map[string]string{}
	}
	work.Annotations[specHashKey] = specHash
	work.Spec = workv1.ManifestWorkSpec{DeleteOption: work.Spec.DeleteOption}
	work.Status.ResourceStatus = feedbackOfAddOn(work)
	work.ManagedFields = nil
	return work, nil
}

// feedbackOfAddOn is what a cluster reports about the objects of an add-on, which its template's
// controller needs.
func feedbackOfAddOn(work *workv1.ManifestWork) workv1.ManifestResourceStatus {
	status := workv1.ManifestResourceStatus{}
	if work.Labels[addonv1alpha1.AddOnNameLabel] == "" {
		return status
	}
	for _, manifest := range work.Status.ResourceStatus.Manifests {
		if len(manifest.StatusFeedback.Values) > 0 {
			status.Manifests = append(status.Manifests, workv1.ManifestCondition{ResourceMeta: manifest.ResourceMeta, StatusFeedback: manifest.StatusFeedback})
		}
	}
	return status
}

// HashOf is the hash of a ManifestWork's spec, whether the object is from the cache or complete.
func HashOf(work *workv1.ManifestWork) (string, error) {
	if known, ok := work.Annotations[specHashKey]; ok {
		return known, nil
	}
	return hash.JSON(&work.Spec)
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &workv1.ManifestWork{}, worksBySet, func(object client.Object) []string {
		if value, ok := object.GetLabels()[workv1alpha1.ReplicaSetLabel]; ok {
			return []string{value}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("indexing ManifestWorks by set: %w", err)
	}
	err = indexer.IndexField(ctx, &workv1alpha1.ManifestWorkReplicaSet{}, setsByPlacement, func(object client.Object) []string {
		var names []string
		for _, ref := range object.(*workv1alpha1.ManifestWorkReplicaSet).Spec.PlacementRefs {
			names = append(names, ref.Name)
		}
		return names
	})
	if err != nil {
		return fmt.Errorf("indexing ManifestWorkReplicaSets by Placement: %w", err)
	}
	return nil
}
