// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// placementIndex is the cache's index of objects by the label of their placement.
const placementIndex = "placement"

// pausedIndex is the cache's index of members by whether they are paused.
const pausedIndex = "paused"

// AddIndexes adds the indexes that the lists below need.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for _, kind := range derived() {
		err := indexer.IndexField(ctx, kind, placementIndex, func(object client.Object) []string {
			return []string{object.GetLabels()[placementv1beta1.ParentPlacementLabel]}
		})
		if err != nil {
			return fmt.Errorf("indexing %T by placement: %w", kind, err)
		}
	}
	err := indexer.IndexField(ctx, &clusterv1beta1.MemberCluster{}, pausedIndex, func(object client.Object) []string {
		return []string{strconv.FormatBool(placementv1beta1.Paused(object))}
	})
	if err != nil {
		return fmt.Errorf("indexing members by whether they are paused: %w", err)
	}
	return nil
}

// PausedMembers are the paused members, from the cache.
func PausedMembers(ctx context.Context, reader client.Reader) (map[string]bool, error) {
	var list clusterv1beta1.MemberClusterList
	if err := reader.List(ctx, &list, client.MatchingFields{pausedIndex: strconv.FormatBool(true)}); err != nil {
		return nil, fmt.Errorf("listing paused members: %w", err)
	}
	paused := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		paused[list.Items[i].Name] = true
	}
	return paused, nil
}

// KeyOf returns the placement of an object, and false if it has no such label.
func KeyOf(object client.Object) (types.NamespacedName, bool) {
	name := object.GetLabels()[placementv1beta1.ParentPlacementLabel]
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: name}, name != ""
}

// Placement reads a placement; the error can be NotFound.
func Placement(ctx context.Context, reader client.Reader, key types.NamespacedName, options ...client.GetOption) (placementv1beta1.PlacementObject, error) {
	placement := NewPlacement(key.Namespace)
	if err := reader.Get(ctx, key, placement, options...); err != nil {
		return nil, fmt.Errorf("reading placement %q: %w", klog.KRef(key.Namespace, key.Name), err)
	}
	return placement, nil
}

// EachPlacement calls do with every placement in the cache, of both scopes. They are not copied: do
// must not change them.
func EachPlacement(ctx context.Context, cache client.Reader, do func(placementv1beta1.PlacementObject)) {
	for _, list := range []client.ObjectList{&placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ResourcePlacementList{}} {
		err := cache.List(ctx, list, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(list, func(item runtime.Object) error {
				if placement, ok := item.(placementv1beta1.PlacementObject); ok {
					do(placement)
				}
				return nil
			})
		}
		if err != nil {
			// The list is from memory, so it fails only when the gateway stops.
			ctrl.LoggerFrom(ctx).Error(err, "Could not list placements after a change of something else")
		}
	}
}

// Bindings lists the placement's bindings from the cache, sorted by name.
func Bindings(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]placementv1beta1.BindingObject, error) {
	return bindings(ctx, reader, key, client.MatchingFields{placementIndex: key.Name})
}

// LiveBindings lists the placement's bindings from the API server.
func LiveBindings(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]placementv1beta1.BindingObject, error) {
	return bindings(ctx, reader, key, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: key.Name})
}

func bindings(ctx context.Context, reader client.Reader, key types.NamespacedName, by client.ListOption) ([]placementv1beta1.BindingObject, error) {
	var into client.ObjectList = &placementv1beta1.ClusterResourceBindingList{}
	if key.Namespace != "" {
		into = &placementv1beta1.ResourceBindingList{}
	}
	return list(ctx, reader, key, "bindings", into, by, func(a, b placementv1beta1.BindingObject) int { return cmp.Compare(a.GetName(), b.GetName()) })
}

// list lists the objects of a placement in an order.
func list[T client.Object](ctx context.Context, reader client.Reader, key types.NamespacedName, what string, into client.ObjectList, by client.ListOption, order func(a, b T) int) ([]T, error) {
	if err := reader.List(ctx, into, by, client.InNamespace(key.Namespace)); err != nil {
		return nil, fmt.Errorf("listing %s of placement %q: %w", what, klog.KRef(key.Namespace, key.Name), err)
	}
	found := slices.Grow([]T(nil), meta.LenList(into))
	err := meta.EachListItem(into, func(item runtime.Object) error {
		found = append(found, item.(T))
		return nil
	})
	slices.SortFunc(found, order)
	return found, err
}

// PolicySnapshots lists the placement's policy snapshots from the cache, the oldest first.
func PolicySnapshots(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]placementv1beta1.PolicySnapshotObject, error) {
	return policySnapshots(ctx, reader, key, client.MatchingFields{placementIndex: key.Name})
}

// LivePolicySnapshots lists the placement's policy snapshots from the API server.
func LivePolicySnapshots(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]placementv1beta1.PolicySnapshotObject, error) {
	return policySnapshots(ctx, reader, key, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: key.Name})
}

func policySnapshots(ctx context.Context, reader client.Reader, key types.NamespacedName, by client.ListOption) ([]placementv1beta1.PolicySnapshotObject, error) {
	var into client.ObjectList = &placementv1beta1.ClusterSchedulingPolicySnapshotList{}
	if key.Namespace != "" {
		into = &placementv1beta1.SchedulingPolicySnapshotList{}
	}
	return list(ctx, reader, key, "policy snapshots", into, by, func(a, b placementv1beta1.PolicySnapshotObject) int {
		return cmp.Compare(PolicyIndex(a), PolicyIndex(b))
	})
}

// ResourceSnapshots lists the metadata of the placement's resource snapshots from the cache, the oldest
// group first.
func ResourceSnapshots(ctx context.Context, reader client.Reader, key types.NamespacedName) ([]*metav1.PartialObjectMetadata, error) {
	return list(ctx, reader, key, "resource snapshots", resourceSnapshotMetadataList(key.Namespace), client.MatchingFields{placementIndex: key.Name},
		func(a, b *metav1.PartialObjectMetadata) int { return cmp.Compare(ResourceIndex(a), ResourceIndex(b)) })
}

// LatestPolicySnapshot is the placement's one with the highest index of those with the latest label, or
// nil. While a new snapshot replaces another, both have the label.
func LatestPolicySnapshot(placement metav1.Object, snapshots []placementv1beta1.PolicySnapshotObject) placementv1beta1.PolicySnapshotObject {
	for _, s := range slices.Backward(snapshots) {
		if IsLatest(s) && metav1.IsControlledBy(s, placement) {
			return s
		}
	}
	return nil
}

// LatestResourceSnapshot is the master of the placement's group with the highest index of those with the
// latest label, or nil. Snapshots of an earlier placement of the same name are ignored: the cache may
// still have them, and they remain if that placement was re-created after its finalizers were removed.
func LatestResourceSnapshot(placement metav1.Object, snapshots []*metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	for _, s := range slices.Backward(snapshots) {
		if IsLatest(s) && IsMaster(s) && metav1.IsControlledBy(s, placement) {
			return s
		}
	}
	return nil
}

// IsLatest reports whether a snapshot has the latest label.
func IsLatest(object metav1.Object) bool {
	return object.GetLabels()[placementv1beta1.IsLatestSnapshotLabel] == strconv.FormatBool(true)
}

// IsMaster reports whether a resource snapshot is the first of its group.
func IsMaster(object metav1.Object) bool {
	_, ok := object.GetAnnotations()[placementv1beta1.ResourceHashAnnotation]
	return ok
}

// PolicyIndex is the index of a policy snapshot; -1 if it has none.
func PolicyIndex(object metav1.Object) int { return index(object, placementv1beta1.PolicyIndexLabel) }

// ResourceIndex is the index of a resource snapshot's group; -1 if it has none.
func ResourceIndex(object metav1.Object) int {
	return index(object, placementv1beta1.ResourceIndexLabel)
}

// OverrideIndex is the index of an override's snapshot; -1 if it has none.
func OverrideIndex(object metav1.Object) int {
	return index(object, placementv1beta1.OverrideIndexLabel)
}

func index(object metav1.Object, label string) int {
	i, err := strconv.Atoi(object.GetLabels()[label])
	if err != nil || i < 0 {
		return -1
	}
	return i
}
