// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/nearest"
)

// Runs reads the update runs of both scopes, the newest first.
func (h *Hub) Runs(ctx context.Context) ([]placementv1beta1.UpdateRunObject, error) {
	var wide placementv1beta1.ClusterStagedUpdateRunList
	if err := h.List(ctx, &wide); err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var narrow placementv1beta1.StagedUpdateRunList
	if err := h.List(ctx, &narrow); err != nil && !apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var runs []placementv1beta1.UpdateRunObject
	for i := range wide.Items {
		runs = append(runs, &wide.Items[i])
	}
	for i := range narrow.Items {
		runs = append(runs, &narrow.Items[i])
	}
	slices.SortStableFunc(runs, func(a, b placementv1beta1.UpdateRunObject) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	return runs, nil
}

// RunNames lists those of both scopes, in the form that Run accepts.
func (h *Hub) RunNames(ctx context.Context) ([]string, error) {
	wide, err := h.Names(ctx, placementv1beta1.GroupVersion.WithKind("ClusterStagedUpdateRun"), "")
	if err != nil {
		return nil, err
	}
	narrow, err := h.Names(ctx, placementv1beta1.GroupVersion.WithKind("StagedUpdateRun"), "")
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	return append(wide, narrow...), nil
}

// Run reads a run: NAME of a ClusterStagedUpdateRun, NAMESPACE/NAME of a StagedUpdateRun.
func (h *Hub) Run(ctx context.Context, name string) (placementv1beta1.UpdateRunObject, error) {
	var run placementv1beta1.UpdateRunObject = &placementv1beta1.ClusterStagedUpdateRun{}
	key := client.ObjectKey{Name: name}
	if namespace, base, namespaced := strings.Cut(name, "/"); namespaced {
		run, key = &placementv1beta1.StagedUpdateRun{}, client.ObjectKey{Namespace: namespace, Name: base}
	}
	err := h.Get(ctx, key, run)
	if apierrors.IsNotFound(err) {
		if names, listErr := h.RunNames(ctx); listErr == nil {
			return nil, nearest.NotFound("run", name, names, "kubectl fleetgate run list")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading run %q: %w", name, err)
	}
	return run, nil
}

func (h *Hub) approvalsOf(ctx context.Context, run placementv1beta1.UpdateRunObject) ([]placementv1beta1.ApprovalRequestObject, error) {
	var list client.ObjectList = &placementv1beta1.ClusterApprovalRequestList{}
	if run.GetNamespace() != "" {
		list = &placementv1beta1.ApprovalRequestList{}
	}
	if err := h.List(ctx, list, client.InNamespace(run.GetNamespace()), client.MatchingLabels{placementv1beta1.TargetUpdateRunLabel: run.GetName()}); err != nil {
		return nil, fmt.Errorf("listing the approval requests of run %q: %w", run.GetName(), err)
	}
	var requests []placementv1beta1.ApprovalRequestObject
	err := meta.EachListItem(list, func(item runtime.Object) error {
		requests = append(requests, item.(placementv1beta1.ApprovalRequestObject))
		return nil
	})
	return requests, err
}

// SnapshotIndexes lists the indexes of the existing resource snapshots of a placement.
func (h *Hub) SnapshotIndexes(ctx context.Context, placement placementv1beta1.PlacementObject) ([]int, error) {
	kind := "ClusterResourceSnapshotList"
	if placement.GetNamespace() != "" {
		kind = "ResourceSnapshotList"
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind))
	labels := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()}
	if err := h.List(ctx, list, client.InNamespace(placement.GetNamespace()), labels); err != nil {
		return nil, fmt.Errorf("listing the snapshots of placement %q: %w", NameOf(placement), err)
	}
	var indexes []int
	for i := range list.Items {
		if index, err := strconv.Atoi(list.Items[i].Labels[placementv1beta1.ResourceIndexLabel]); err == nil {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return slices.Compact(indexes), nil
}

// MakeRun creates and starts a run like another one, to a snapshot.
func (h *Hub) MakeRun(ctx context.Context, like placementv1beta1.UpdateRunObject, index int) (placementv1beta1.UpdateRunObject, error) {
	// The name is used as a label value: 63 characters including the generated suffix.
	base := like.GetName()
	object := metav1.ObjectMeta{Namespace: like.GetNamespace(), GenerateName: base[:min(len(base), 45)] + "-back-"}
	spec := placementv1beta1.UpdateRunSpec{
		PlacementName: like.GetSpec().PlacementName, StagedRolloutStrategyName: like.GetSpec().StagedRolloutStrategyName,
		ResourceSnapshotIndex: strconv.Itoa(index), State: placementv1beta1.UpdateRunRun,
	}
	var run placementv1beta1.UpdateRunObject = &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: object, Spec: spec}
	if like.GetNamespace() != "" {
		run = &placementv1beta1.StagedUpdateRun{ObjectMeta: object, Spec: spec}
	}
	if err := h.Create(ctx, run); err != nil {
		return nil, fmt.Errorf("creating a run to snapshot %d: %w", index, err)
	}
	return run, nil
}

// StateOfRun summarizes a run: its state, and the message of what it waits for or why it failed.
func StateOfRun(run placementv1beta1.UpdateRunObject) (state, message string) {
	conditions := run.GetStatus().Conditions
	if c := meta.FindStatusCondition(conditions, placementv1beta1.ConditionUpdateRunSucceeded); c != nil {
		if c.Status == metav1.ConditionTrue {
			return "Succeeded", ""
		}
		return "Failed", c.Message
	}
	if c := meta.FindStatusCondition(conditions, placementv1beta1.ConditionUpdateRunProgressing); c != nil {
		state := strings.TrimPrefix(c.Reason, "UpdateRun")
		if c.Status == metav1.ConditionTrue {
			return state, ""
		}
		return state, c.Message
	}
	if c := meta.FindStatusCondition(conditions, placementv1beta1.ConditionUpdateRunInitialized); c != nil && c.Status != metav1.ConditionTrue {
		return "NotInitialized", c.Message
	}
	return "Initialized", "not started; to start it, run kubectl fleetgate run resume " + NameOf(run)
}
