// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package updaterun

import (
	"context"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
)

func placementOf(run placementv1beta1.UpdateRunObject) types.NamespacedName {
	return types.NamespacedName{Namespace: run.GetNamespace(), Name: run.GetSpec().PlacementName}
}

// observed reads the input of a decision about a run from the cache, or from the API server.
func (r *Reconciler) observed(ctx context.Context, run placementv1beta1.UpdateRunObject, live bool) (*Observed, error) {
	o := &Observed{Run: run, Members: map[string]labels.Set{}, Approvals: map[string]placementv1beta1.ApprovalRequestObject{}, Now: r.Clock.Now()}
	reader, bindings, policies := client.Reader(r.Client), objects.Bindings, objects.PolicySnapshots
	if live {
		reader, bindings, policies = r.Live, objects.LiveBindings, objects.LivePolicySnapshots
	}
	key := placementOf(run)
	placement, err := objects.Placement(ctx, reader, key)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		//lint:ignore nilerr That there is no placement is something to decide about.
		return o, nil
	}
	o.Placement = placement
	snapshots, err := policies(ctx, reader, key)
	if err != nil {
		return nil, err
	}
	o.Policy = objects.LatestPolicySnapshot(placement, snapshots)
	if o.Bindings, err = bindings(ctx, reader, key); err != nil {
		return nil, err
	}
	var members clusterv1beta1.MemberClusterList
	if err := reader.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil { // Only their labels are read.
		return nil, fmt.Errorf("listing members: %w", err)
	}
	for i := range members.Items {
		o.Members[members.Items[i].Name] = members.Items[i].Labels
	}
	if o.Paused, err = objects.PausedMembers(ctx, r.Client); err != nil {
		return nil, err
	}
	return o, r.gatherApprovals(ctx, reader, o)
}

func (r *Reconciler) gatherApprovals(ctx context.Context, reader client.Reader, o *Observed) error {
	for _, name := range approvalNames(o.Run.GetStatus()) {
		a := newApproval(o.Run.GetNamespace())
		err := reader.Get(ctx, types.NamespacedName{Namespace: o.Run.GetNamespace(), Name: name}, a)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading approval request %q: %w", name, err)
		}
		o.Approvals[name] = a
	}
	return nil
}

// strategy reads a run's update strategy; nil if it does not exist.
func (r *Reconciler) strategy(ctx context.Context, run placementv1beta1.UpdateRunObject) (*placementv1beta1.UpdateStrategySpec, error) {
	object, spec := newStrategy(run.GetNamespace())
	name := run.GetSpec().StagedRolloutStrategyName
	if found, err := reconcileutil.GetIfExists(ctx, r.Live, types.NamespacedName{Namespace: run.GetNamespace(), Name: name}, object, "reading update strategy %q", name); !found {
		return nil, err
	}
	return spec, nil
}

// resources finds the snapshot that the run rolls out, and creates one if none is named.
func (r *Reconciler) resources(ctx context.Context, run placementv1beta1.UpdateRunObject, placement placementv1beta1.PlacementObject) (*metav1.PartialObjectMetadata, *refusal.Refusal, error) {
	wanted := run.GetSpec().ResourceSnapshotIndex
	if wanted == "" {
		s, err := r.Taker.Take(ctx, placement)
		if invalid := refusal.Of(err); invalid != nil {
			return nil, refused("the placement's resource selectors are invalid: %s", invalid.Message), nil
		}
		return s, nil, err
	}
	index, err := strconv.Atoi(wanted)
	if err != nil || index < 0 {
		return nil, refused("resourceSnapshotIndex %q is no whole number of at least 0; create another run", wanted), nil
	}
	s := objects.ResourceSnapshotMetadata(run.GetNamespace())
	key := placementOf(run)
	err = r.Client.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: placementv1beta1.ResourceSnapshotName(key.Name, index)}, s)
	if apierrors.IsNotFound(err) {
		return nil, refused("placement %q has no resource snapshot with index %d; remove resourceSnapshotIndex to roll out the current selection", key.Name, index), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading resource snapshot %d of placement %q: %w", index, key.Name, err)
	}
	return s, nil, nil
}

// recordOverrides stores the overrides of each member in the status.
func (r *Reconciler) recordOverrides(ctx context.Context, key types.NamespacedName, status *placementv1beta1.UpdateRunStatus, master string) error {
	var members []string
	for i := range status.StagesStatus {
		members = append(members, memberNames(&status.StagesStatus[i])...)
	}
	sets, err := override.PerMember(ctx, r.Client, key, members, func() ([]placementv1beta1.ResourceIdentifier, error) {
		group, err := r.Snapshots.Group(ctx, types.NamespacedName{Namespace: key.Namespace, Name: master})
		if err != nil {
			return nil, fmt.Errorf("reading the resources of the run: %w", err)
		}
		return group.Objects(), nil
	})
	if err != nil {
		return err
	}
	for i := range status.StagesStatus {
		for j := range status.StagesStatus[i].Clusters {
			c := &status.StagesStatus[i].Clusters[j]
			c.ClusterResourceOverrideSnapshots, c.ResourceOverrideSnapshots = sets[c.ClusterName].Names()
		}
	}
	return nil
}

// snapshotName is the master of the resource snapshots that an initialized run rolls out.
func snapshotName(run placementv1beta1.UpdateRunObject) string {
	index, err := strconv.Atoi(run.GetStatus().ResourceSnapshotIndexUsed)
	if err != nil {
		return "" // The run wrote a number there.
	}
	return placementv1beta1.ResourceSnapshotName(run.GetSpec().PlacementName, index)
}
