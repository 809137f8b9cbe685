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

// Users knows which resource snapshots runs need. A snapshot that is trimmed under a run
// would leave the members of its later stages with nothing to go to.
type Users struct {
	// Client reads through a cache with the indexes of AddIndexes.
	Client client.Reader
}

// Needed names the masters that unfinished runs of a placement roll out, or will.
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
		// One that names none begins with the latest, which stays anyway.
		index, err := strconv.Atoi(cmp.Or(run.GetStatus().ResourceSnapshotIndexUsed, run.GetSpec().ResourceSnapshotIndex))
		if err == nil {
			names = append(names, placementv1beta1.ResourceSnapshotName(placement.Name, index))
		}
		return nil
	})
	return names, err
}
