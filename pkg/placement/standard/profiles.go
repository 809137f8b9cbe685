// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package standard

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
)

// wanted is the clusters of each placement's decision, with or without a profile. It shows which
// placements a new or deleted profile concerns.
type wanted struct {
	mu sync.Mutex // Guards by.
	by map[types.NamespacedName]sets.Set[string]
}

// set stores the clusters of a placement; nil means that it is not published. It is called before
// profiles are read, so that no new profile is missed.
func (w *wanted) set(key types.NamespacedName, clusters sets.Set[string]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if clusters == nil {
		delete(w.by, key)
		return
	}
	if w.by == nil {
		w.by = map[types.NamespacedName]sets.Set[string]{}
	}
	w.by[key] = clusters
}

// of are the placements that want a cluster.
func (w *wanted) of(cluster string) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []types.NamespacedName
	for key, clusters := range w.by {
		if clusters.Has(cluster) {
			keys = append(keys, key)
		}
	}
	return keys
}

// published are the clusters that have a profile of our manager.
func (r *Reconciler) published(ctx context.Context) (sets.Set[string], error) {
	var list multiclusterv1alpha1.ClusterProfileList
	if err := r.Client.List(ctx, &list, client.InNamespace(r.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ClusterProfiles of namespace %s: %w", r.Namespace, err)
	}
	clusters := sets.New[string]()
	for i := range list.Items {
		if r.isOurs(&list.Items[i]) {
			clusters.Insert(list.Items[i].Name)
		}
	}
	return clusters, nil
}

// isOurs reports whether a profile can be named: it is our manager's, and not being deleted.
func (r *Reconciler) isOurs(profile *multiclusterv1alpha1.ClusterProfile) bool {
	return profile.DeletionTimestamp == nil && profile.Spec.ClusterManager.Name == r.Manager
}
