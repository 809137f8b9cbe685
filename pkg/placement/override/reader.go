// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// Latest reads the latest snapshot of every override. While a new snapshot replaces another, both have
// the label: the one with the higher index counts.
func Latest(ctx context.Context, reader client.Reader) (Set, error) {
	latest := client.MatchingLabels{placementv1beta1.IsLatestSnapshotLabel: strconv.FormatBool(true)}
	var cluster placementv1beta1.ClusterResourceOverrideSnapshotList
	if err := reader.List(ctx, &cluster, latest); err != nil {
		return nil, fmt.Errorf("listing snapshots of ClusterResourceOverrides: %w", err)
	}
	var within placementv1beta1.ResourceOverrideSnapshotList
	if err := reader.List(ctx, &within, latest); err != nil {
		return nil, fmt.Errorf("listing snapshots of ResourceOverrides: %w", err)
	}
	n := newest{}
	for i := range cluster.Items {
		n.add(&cluster.Items[i], OfCluster(&cluster.Items[i]))
	}
	for i := range within.Items {
		n.add(&within.Items[i], OfNamespace(&within.Items[i]))
	}
	return n.set(), nil
}

// newest is the newest snapshot of each override.
type newest map[types.NamespacedName]struct {
	index    int
	override Override
}

func (n newest) add(snapshot client.Object, o Override) {
	key := types.NamespacedName{Namespace: snapshot.GetNamespace(), Name: naming.Labelled(snapshot, placementv1beta1.ParentOverrideLabel)}
	if index := objects.OverrideIndex(snapshot); index >= 0 && (n[key].override.Snapshot.Name == "" || index > n[key].index) {
		n[key] = struct {
			index    int
			override Override
		}{index, o}
	}
}

func (n newest) set() Set {
	all := make([]Override, 0, len(n))
	for _, found := range n {
		all = append(all, found.override)
	}
	return NewSet(all...)
}

// PerMember finds the overrides for a placement's selected resources on each member. It calls selected
// only if there are overrides at all. A deleted member has none: its binding will be deleted too.
func PerMember(ctx context.Context, reader client.Reader, placement types.NamespacedName, members []string,
	selected func() ([]placementv1beta1.ResourceIdentifier, error),
) (map[string]Set, error) {
	all, err := Latest(ctx, reader)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	resources, err := selected()
	if err != nil {
		return nil, err
	}
	if all = all.For(placement, resources); len(all) == 0 {
		return nil, nil
	}
	found := make(map[string]Set, len(members))
	for _, name := range members {
		var member clusterv1beta1.MemberCluster
		err := reader.Get(ctx, types.NamespacedName{Name: name}, &member)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading member %q: %w", name, err)
		}
		found[name] = all.On(MemberOf(&member))
	}
	return found, nil
}

// Named reads the snapshots that a binding lists. The error is NotFound if one is deleted.
func Named(ctx context.Context, reader client.Reader, cluster []string, within []placementv1beta1.NamespacedName) (Set, error) {
	all := make([]Override, 0, len(cluster)+len(within))
	for _, name := range cluster {
		var s placementv1beta1.ClusterResourceOverrideSnapshot
		if err := reader.Get(ctx, types.NamespacedName{Name: name}, &s); err != nil {
			return nil, fmt.Errorf("reading override snapshot %q: %w", name, err)
		}
		all = append(all, OfCluster(&s))
	}
	for _, w := range within {
		key := types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
		var s placementv1beta1.ResourceOverrideSnapshot
		if err := reader.Get(ctx, key, &s); err != nil {
			return nil, fmt.Errorf("reading override snapshot %q: %w", key, err)
		}
		all = append(all, OfNamespace(&s))
	}
	return NewSet(all...), nil
}

// MemberOf is the part of a member that rules and variables use.
func MemberOf(m *clusterv1beta1.MemberCluster) Member {
	properties := make(map[string]string, len(m.Status.Properties))
	for name, property := range m.Status.Properties {
		properties[string(name)] = property.Value
	}
	return Member{Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, Properties: properties}
}

// MemberChanges passes only members for which MemberOf changed.
func MemberChanges() predicate.Predicate {
	return enqueue.OnUpdate(func(before, after *clusterv1beta1.MemberCluster) bool {
		return !equality.Semantic.DeepEqual(MemberOf(before), MemberOf(after))
	})
}
