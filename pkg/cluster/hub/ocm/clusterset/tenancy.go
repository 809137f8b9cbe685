// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
)

// Tenancy says which clusters a namespace may choose from: those of the ManagedClusterSets that are
// bound to it.
type Tenancy struct {
	// Reader reads through a cache.
	Reader client.Reader
	// Counts is true for ManagedClusters that count. One that somebody created with the name of a
	// member does not stand for that member.
	Counts func(context.Context, *clusterv1.ManagedCluster) (bool, error)
}

// Within are the names of the clusters that a namespace may choose from; never nil without an
// error.
func (t Tenancy) Within(ctx context.Context, namespace string) (sets.Set[string], error) {
	bindings := &clusterv1beta2.ManagedClusterSetBindingList{}
	if err := t.Reader.List(ctx, bindings, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the sets that are bound to namespace %q: %w", namespace, err)
	}
	if len(bindings.Items) == 0 {
		return sets.New[string](), nil
	}
	all := &clusterv1beta2.ManagedClusterSetList{}
	if err := t.Reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing sets: %w", err)
	}
	bound := selectorsOf(bindings.Items, all.Items)
	clusters := &clusterv1.ManagedClusterList{}
	if err := t.Reader.List(ctx, clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing clusters: %w", err)
	}
	within := sets.New[string]()
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		if !selects(bound, cluster.Labels) {
			continue
		}
		counts, err := t.Counts(ctx, cluster)
		if err != nil {
			return nil, fmt.Errorf("reading the owner of ManagedCluster %q: %w", cluster.Name, err)
		}
		if counts {
			within.Insert(cluster.Name)
		}
	}
	return within, nil
}

// selectorsOf are those of the bound sets. A binding with another name than its set's binds
// nothing, because its author was authorized by the name. Neither does one that is being deleted,
// or whose set is. A set with an invalid selector has no clusters.
func selectorsOf(bindings []clusterv1beta2.ManagedClusterSetBinding, all []clusterv1beta2.ManagedClusterSet) []labels.Selector {
	named := sets.New[string]()
	for i := range bindings {
		if b := &bindings[i]; b.DeletionTimestamp == nil && b.Name == b.Spec.ClusterSet {
			named.Insert(b.Name)
		}
	}
	var bound []labels.Selector
	for i := range all {
		set := &all[i]
		if !named.Has(set.Name) || set.DeletionTimestamp != nil {
			continue
		}
		if selector, err := Members(set); err == nil {
			bound = append(bound, selector)
		}
	}
	return bound
}

func selects(selectors []labels.Selector, of labels.Set) bool {
	for _, selector := range selectors {
		if selector.Matches(of) {
			return true
		}
	}
	return false
}
