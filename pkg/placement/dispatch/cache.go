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

// manifestsHashKey is an annotation that Works have in the cache, and nowhere
// else. An API server stores no annotation of such a name: a hash that comes from the API
// would hide that somebody changed the manifests.
const manifestsHashKey = "//manifests-hash"

const (
	// worksByBinding finds the Works of a binding.
	worksByBinding = "binding"
	// bindingsByMember finds the bindings to a member.
	bindingsByMember = "member"
)

// CacheOptions says how the manager's cache has to keep Works: without their
// manifests, which only members need. Without it the package works too, and
// takes more memory.
func CacheOptions() map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&placementv1beta1.Work{}: {Transform: forget}}
}

// forget leaves of a Work's manifests their hash.
func forget(object any) (any, error) {
	w, ok := object.(*placementv1beta1.Work)
	if !ok {
		return object, nil
	}
	hash, err := manifestsHash(w)
	if err != nil {
		hash = "" // Then it differs from what is desired, and is written anew.
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	w.Annotations[manifestsHashKey] = hash
	w.Spec.Workload.Manifests = nil
	w.ManagedFields = nil
	return w, nil
}

// manifestsHash tells the manifests of Works apart, of one from the cache or a
// whole one.
func manifestsHash(w *placementv1beta1.Work) (string, error) {
	if hash, ok := w.Annotations[manifestsHashKey]; ok {
		return hash, nil
	}
	return snapshot.Hash(w.Spec.Workload.Manifests)
}

func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
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
