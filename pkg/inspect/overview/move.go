// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// UID identifies a hub: it is the UID of its namespace kube-system.
func (h *Hub) UID(ctx context.Context) (string, error) {
	namespace := &corev1.Namespace{}
	if err := h.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, namespace); err != nil {
		return "", fmt.Errorf("reading namespace %q from the hub at %s: %w", metav1.NamespaceSystem, h.Config.Host, err)
	}
	return string(namespace.UID), nil
}

// ChangeMember applies change to a member and retries on conflict. It does not write a member that
// change leaves as it is.
func (h *Hub) ChangeMember(ctx context.Context, name string, change func(*clusterv1beta1.MemberCluster)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		member, err := h.Member(ctx, name)
		if err != nil {
			return err
		}
		before := member.DeepCopy()
		if change(member); equality.Semantic.DeepEqual(before, member) {
			return nil
		}
		if err := h.Patch(ctx, member, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("updating member %q: %w", name, err)
		}
		return nil
	})
}

// PlacementsOn lists the names of the placements that have resources on a member.
func (h *Hub) PlacementsOn(ctx context.Context, member string) ([]string, error) {
	placed, err := h.PlacedOn(ctx, member)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, p := range placed {
		if p.Placement != "" {
			names = append(names, p.Placement)
		}
	}
	return slices.Compact(names), nil
}

// RemovedByLeaving lists the ManifestWorks of a member whose resources are deleted when the member
// leaves: all with a deletion policy other than Orphan.
func (h *Hub) RemovedByLeaving(ctx context.Context, member string) ([]string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "work.open-cluster-management.io", Version: "v1", Kind: "ManifestWorkList"})
	err := h.List(ctx, list, client.InNamespace(member))
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		//lint:ignore nilerr A hub without the kind has no ManifestWorks.
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of member %q: %w", member, err)
	}
	var names []string
	for i := range list.Items {
		policy, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "deleteOption", "propagationPolicy")
		if policy != "Orphan" {
			names = append(names, list.Items[i].GetName())
		}
	}
	return names, nil
}
