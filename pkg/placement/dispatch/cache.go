// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// manifestsHashKey is an annotation that Works have only in the cache. An API server stores no
// annotation with such a name: a hash from the API would hide changed manifests.
const manifestsHashKey = "//manifests-hash"

const (
	worksByBinding   = "binding"
	bindingsByMember = "member"
)

// CacheOptions makes the manager's cache drop the manifests of Works, which only members need. The
// package works without it, but needs more memory.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&placementv1beta1.Work{}: {Transform: forget}}
}

// forget replaces a Work's manifests by their hash.
func forget(object any) (any, error) {
	w, ok := object.(*placementv1beta1.Work)
	if !ok {
		return object, nil
	}
	hash, err := manifestsHash(w)
	if err != nil {
		hash = "" // Then it differs from the desired one, and is written again.
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	w.Annotations[manifestsHashKey] = hash
	w.Spec.Workload.Manifests = nil
	w.ManagedFields = nil
	return w, nil
}

// manifestsHash is the hash of a Work's manifests, whether the object is from the cache or complete.
func manifestsHash(w *placementv1beta1.Work) (string, error) {
	if hash, ok := w.Annotations[manifestsHashKey]; ok {
		return hash, nil
	}
	return snapshot.Hash(w.Spec.Workload.Manifests)
}

// AddIndexes adds the indexes that the controller uses.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &placementv1beta1.Work{}, worksByBinding, func(object client.Object) []string {
		return []string{object.GetLabels()[placementv1beta1.ParentBindingLabel]}
	})
	if err != nil {
		return fmt.Errorf("indexing works by binding: %w", err)
	}
	for _, binding := range []client.Object{&placementv1beta1.ClusterResourceBinding{}, &placementv1beta1.ResourceBinding{}} {
		err := indexer.IndexField(ctx, binding, bindingsByMember, func(object client.Object) []string {
			return []string{object.(placementv1beta1.BindingObject).GetSpec().TargetCluster}
		})
		if err != nil {
			return fmt.Errorf("indexing %T by member: %w", binding, err)
		}
	}
	return nil
}
