// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/naming"
	"fleetgate.io/fleetgate/pkg/placement/objects"
)

// kind abstracts the two kinds of overrides for the controller.
type kind struct {
	controller    string
	empty         func() client.Object
	emptySnapshot func() client.Object
	emptyList     func() client.ObjectList // of snapshots
	// spec is the part of the override that a snapshot stores and that is hashed.
	spec func(override client.Object) any
	// hash is the stored hash of a snapshot.
	hash func(snapshot client.Object) []byte
	// override is the content of a snapshot.
	override func(snapshot client.Object) Override
	fill     func(snapshot, override client.Object, hash []byte)
}

func clusterScoped() kind {
	return kind{
		controller:    "override.clustersnapshots",
		empty:         func() client.Object { return &placementv1beta1.ClusterResourceOverride{} },
		emptySnapshot: func() client.Object { return &placementv1beta1.ClusterResourceOverrideSnapshot{} },
		emptyList:     func() client.ObjectList { return &placementv1beta1.ClusterResourceOverrideSnapshotList{} },
		spec:          func(override client.Object) any { return override.(*placementv1beta1.ClusterResourceOverride).Spec },
		hash: func(snapshot client.Object) []byte {
			return snapshot.(*placementv1beta1.ClusterResourceOverrideSnapshot).Spec.OverrideHash
		},
		override: func(snapshot client.Object) Override {
			return OfCluster(snapshot.(*placementv1beta1.ClusterResourceOverrideSnapshot))
		},
		fill: func(snapshot, override client.Object, hash []byte) {
			s := snapshot.(*placementv1beta1.ClusterResourceOverrideSnapshot)
			s.Spec.OverrideSpec, s.Spec.OverrideHash = override.(*placementv1beta1.ClusterResourceOverride).Spec, hash
		},
	}
}

func namespaced() kind {
	return kind{
		controller:    "override.snapshots",
		empty:         func() client.Object { return &placementv1beta1.ResourceOverride{} },
		emptySnapshot: func() client.Object { return &placementv1beta1.ResourceOverrideSnapshot{} },
		emptyList:     func() client.ObjectList { return &placementv1beta1.ResourceOverrideSnapshotList{} },
		spec:          func(override client.Object) any { return override.(*placementv1beta1.ResourceOverride).Spec },
		hash: func(snapshot client.Object) []byte {
			return snapshot.(*placementv1beta1.ResourceOverrideSnapshot).Spec.OverrideHash
		},
		override: func(snapshot client.Object) Override {
			return OfNamespace(snapshot.(*placementv1beta1.ResourceOverrideSnapshot))
		},
		fill: func(snapshot, override client.Object, hash []byte) {
			s := snapshot.(*placementv1beta1.ResourceOverrideSnapshot)
			s.Spec.OverrideSpec, s.Spec.OverrideHash = override.(*placementv1beta1.ResourceOverride).Spec, hash
		},
	}
}

// snapshots lists an override's snapshots, the oldest first.
func (k kind) snapshots(ctx context.Context, reader client.Reader, override client.Object) ([]client.Object, error) {
	list, all := k.emptyList(), []client.Object{}
	err := reader.List(ctx, list, client.InNamespace(override.GetNamespace()),
		client.MatchingLabels{placementv1beta1.ParentOverrideLabel: naming.LabelValue(override.GetName())})
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			all = append(all, item.(client.Object))
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listing snapshots of override %q: %w", klog.KObj(override), err)
	}
	slices.SortFunc(all, func(a, b client.Object) int { return cmp.Compare(objects.OverrideIndex(a), objects.OverrideIndex(b)) })
	return all, nil
}

func (k kind) hashOf(override client.Object) ([]byte, error) {
	text, err := hash.JSON(k.spec(override))
	return []byte(text), err
}

// maxOverride is the length of an override's name in its snapshots' names, which end with a number and
// have at most 253 characters.
const maxOverride = 240

// desired is a snapshot of the current override.
func (k kind) desired(override client.Object, hash []byte, index int) client.Object {
	s := k.emptySnapshot()
	s.SetNamespace(override.GetNamespace())
	s.SetName(placementv1beta1.OverrideSnapshotName(naming.Within(override.GetName(), maxOverride), index))
	s.SetLabels(map[string]string{
		placementv1beta1.OverrideIndexLabel:    strconv.Itoa(index),
		placementv1beta1.IsLatestSnapshotLabel: strconv.FormatBool(true),
	})
	naming.Label(s, placementv1beta1.ParentOverrideLabel, override.GetName())
	k.fill(s, override, hash)
	return s
}
