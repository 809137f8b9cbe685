// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Users knows which resource snapshots runs need. If a snapshot were removed under a run, the members
// of its later stages could not be updated.
type Users struct {
	// Client reads through a cache with the indexes of AddIndexes.
	Client client.Reader
}

// Needed names the masters that unfinished runs of a placement roll out now or later.
func (u Users) Needed(ctx context.Context, placement types.NamespacedName) ([]string, error) {
	list := newRunList(placement.Namespace)
	err := u.Client.List(ctx, list, client.MatchingFields{runsByPlacement: placement.Name}, client.InNamespace(placement.Namespace))
	if err != nil {
		return nil, fmt.Errorf("listing the update runs of placement %q: %w", klog.KRef(placement.Namespace, placement.Name), err)
	}
	var names []string
	err = meta.EachListItem(list, func(item runtime.Object) error {
		run, ok := item.(placementv1beta1.UpdateRunObject)
		if !ok || Over(run) {
			return nil
		}
		// A run without an index starts with the latest snapshot, which stays anyway.
		index, err := strconv.Atoi(cmp.Or(run.GetStatus().ResourceSnapshotIndexUsed, run.GetSpec().ResourceSnapshotIndex))
		if err == nil {
			names = append(names, placementv1beta1.ResourceSnapshotName(placement.Name, index))
		}
		return nil
	})
	return names, err
}

// NeededOverrides names the override snapshots that unfinished runs of all placements have
// recorded for their members.
func (u Users) NeededOverrides(ctx context.Context) ([]types.NamespacedName, error) {
	var needed []types.NamespacedName
	for _, list := range []client.ObjectList{&placementv1beta1.ClusterStagedUpdateRunList{}, &placementv1beta1.StagedUpdateRunList{}} {
		if err := u.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing update runs that use override snapshots: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if run, ok := item.(placementv1beta1.UpdateRunObject); ok && !Over(run) {
				needed = append(needed, overridesOf(run.GetStatus())...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return needed, nil
}

func overridesOf(status *placementv1beta1.UpdateRunStatus) []types.NamespacedName {
	var names []types.NamespacedName
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			cluster := &status.StagesStatus[i].Clusters[j]
			for _, name := range cluster.ClusterResourceOverrideSnapshots {
				names = append(names, types.NamespacedName{Name: name})
			}
			for _, s := range cluster.ResourceOverrideSnapshots {
				names = append(names, types.NamespacedName{Namespace: s.Namespace, Name: s.Name})
			}
		}
	}
	return names
}
