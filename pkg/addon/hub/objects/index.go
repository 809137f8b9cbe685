// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/kube/naming"
)

const (
	// byAddOn finds the ManagedClusterAddOns of an add-on in all namespaces.
	byAddOn = "addon"
	// byPlacement finds the ClusterManagementAddOns that name a Placement, as namespace/name. A
	// PlacementDecision has the name in a label, which is shortened if it is long.
	byPlacement = "placement"
	// byConfiguration finds the ManagedClusterAddOns that have a configuration in their status, as
	// resource.group/namespace/name.
	byConfiguration = "configuration"
)

// AddIndexes adds the indexes that this package reads to a manager's cache.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &addonv1alpha1.ManagedClusterAddOn{}, byAddOn, func(object client.Object) []string {
		return []string{object.GetName()}
	})
	if err != nil {
		return fmt.Errorf("indexing ManagedClusterAddOns by add-on: %w", err)
	}
	err = indexer.IndexField(ctx, &addonv1alpha1.ManagedClusterAddOn{}, byConfiguration, func(object client.Object) []string {
		hashes, _ := Hashes(object.(*addonv1alpha1.ManagedClusterAddOn))
		return slices.Collect(maps.Keys(hashes))
	})
	if err != nil {
		return fmt.Errorf("indexing ManagedClusterAddOns by configuration: %w", err)
	}
	err = indexer.IndexField(ctx, &addonv1alpha1.ClusterManagementAddOn{}, byPlacement, func(object client.Object) []string {
		var names []string
		for _, placement := range object.(*addonv1alpha1.ClusterManagementAddOn).Spec.InstallStrategy.Placements {
			names = append(names, placementValue(placement.Namespace, naming.LabelValue(placement.Name)))
		}
		return names
	})
	if err != nil {
		return fmt.Errorf("indexing ClusterManagementAddOns by Placement: %w", err)
	}
	return nil
}

// Hashes are the hashes of the configurations of an add-on, by the keys in the annotation of a
// ManifestWork: resource.group/namespace/name. The namespace of a cluster-scoped one is empty. It is
// false if a hash is missing.
func Hashes(addOn *addonv1alpha1.ManagedClusterAddOn) (map[string]string, bool) {
	hashes, complete := map[string]string{}, true
	for _, reference := range addOn.Status.ConfigReferences {
		if reference.DesiredConfig == nil {
			complete = false
			continue
		}
		complete = complete && reference.DesiredConfig.SpecHash != ""
		hashes[configurationValue(reference.ConfigGroupResource, reference.DesiredConfig.Namespace, reference.DesiredConfig.Name)] = reference.DesiredConfig.SpecHash
	}
	return hashes, complete
}

// SetHashes records the hashes of the configurations from which a ManifestWork was made.
func SetHashes(work *workv1.ManifestWork, hashes map[string]string) error {
	text, err := json.Marshal(hashes)
	if err != nil {
		return fmt.Errorf("writing the hashes of configurations: %w", err)
	}
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, workv1.ConfigSpecHashAnnotation, string(text))
	return nil
}

func configurationValue(kind addonv1alpha1.ConfigGroupResource, namespace, name string) string {
	value := kind.Resource
	if kind.Group != "" {
		value += "." + kind.Group
	}
	return value + "/" + namespace + "/" + name
}

// OfConfiguration queues the ManagedClusterAddOns that have a configuration of this kind and are concerned
// by it.
func OfConfiguration(cache client.Reader, kind addonv1alpha1.ConfigGroupResource, concerned func(config client.Object) func(*addonv1alpha1.ManagedClusterAddOn) bool) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, config client.Object) []reconcile.Request {
		return enqueue.Those(ctx, cache, &addonv1alpha1.ManagedClusterAddOnList{}, concerned(config), client.MatchingFields{byConfiguration: configurationValue(kind, config.GetNamespace(), config.GetName())})
	})
}

// IsAccepted reports whether a cluster may have rights on the hub.
func IsAccepted(cluster *clusterv1.ManagedCluster) bool {
	return cluster.DeletionTimestamp == nil && meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
}

func placementValue(namespace, label string) string { return namespace + "/" + label }

// AddOnsOf are the ManagedClusterAddOns of an add-on by cluster, from the cache. They must not be
// changed.
func AddOnsOf(ctx context.Context, cache client.Reader, name string) (map[string]*addonv1alpha1.ManagedClusterAddOn, error) {
	list := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := cache.List(ctx, list, client.MatchingFields{byAddOn: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ManagedClusterAddOns of add-on %q: %w", name, err)
	}
	addOns := make(map[string]*addonv1alpha1.ManagedClusterAddOn, len(list.Items))
	for i := range list.Items {
		addOns[list.Items[i].Namespace] = &list.Items[i]
	}
	return addOns, nil
}

// NamedLike is the ClusterManagementAddOn of a ManagedClusterAddOn.
func NamedLike(addOn client.Object) []types.NamespacedName {
	return []types.NamespacedName{{Name: addOn.GetName()}}
}

// OfClusterManagementAddOn queues the ManagedClusterAddOns of a ClusterManagementAddOn.
func OfClusterManagementAddOn(cache client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, addOn client.Object) []reconcile.Request {
		return enqueue.All(ctx, cache, &addonv1alpha1.ManagedClusterAddOnList{}, client.MatchingFields{byAddOn: addOn.GetName()})
	})
}

// OfPlacement queues the ClusterManagementAddOns that name a Placement.
func OfPlacement(cache client.Reader) handler.EventHandler {
	return withPlacement(cache, func(placement client.Object) string { return naming.LabelValue(placement.GetName()) })
}

// OfDecision queues the ClusterManagementAddOns that name the Placement of a PlacementDecision.
func OfDecision(cache client.Reader) handler.EventHandler {
	return withPlacement(cache, func(decision client.Object) string {
		return decision.GetLabels()[ocmclusterv1beta1.PlacementLabel]
	})
}

func withPlacement(cache client.Reader, label func(client.Object) string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
		name := label(object)
		if name == "" {
			return nil
		}
		return enqueue.All(ctx, cache, &addonv1alpha1.ClusterManagementAddOnList{}, client.MatchingFields{byPlacement: placementValue(object.GetNamespace(), name)})
	})
}
