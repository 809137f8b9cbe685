// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Placed is a Work of a placement on a member.
type Placed struct {
	// Placement is its name in the form that Hub.Placement accepts; empty if the Work has none.
	Placement string
	// Work is the Work's name in the member's namespace.
	Work string
}

// PlacedOn lists the Works of a member without their contents.
func (h *Hub) PlacedOn(ctx context.Context, member string) ([]Placed, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("WorkList"))
	if err := h.List(ctx, list, client.InNamespace(clusterv1beta1.MemberNamespace(member))); err != nil {
		return nil, fmt.Errorf("listing the Works of member %q: %w", member, err)
	}
	placed := make([]Placed, 0, len(list.Items))
	for i := range list.Items {
		placed = append(placed, Placed{Placement: PlacementOfWork(&list.Items[i]), Work: list.Items[i].Name})
	}
	slices.SortFunc(placed, func(a, b Placed) int {
		return cmp.Or(cmp.Compare(a.Placement, b.Placement), cmp.Compare(a.Work, b.Work))
	})
	return placed, nil
}

// PlacementOfWork returns the placement of a Work, in the form that Placement accepts.
func PlacementOfWork(work metav1.Object) string {
	name := work.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if namespace := work.GetLabels()[placementv1beta1.ParentPlacementNamespaceLabel]; namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// WorksOf reads the Works of a placement on a member, with their status.
func (h *Hub) WorksOf(ctx context.Context, placement placementv1beta1.PlacementObject, member string) ([]placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	labels := client.MatchingLabels{placementv1beta1.ParentPlacementLabel: placement.GetName()}
	if err := h.List(ctx, &list, client.InNamespace(clusterv1beta1.MemberNamespace(member)), labels); err != nil {
		return nil, fmt.Errorf("listing the Works of placement %q on member %q: %w", NameOf(placement), member, err)
	}
	return slices.DeleteFunc(list.Items, func(w placementv1beta1.Work) bool {
		return w.Labels[placementv1beta1.ParentPlacementNamespaceLabel] != placement.GetNamespace()
	}), nil
}

// WorksOfMembers is WorksOf for several members, by member.
func (h *Hub) WorksOfMembers(ctx context.Context, placement placementv1beta1.PlacementObject, members []string) (map[string][]placementv1beta1.Work, error) {
	found := make([][]placementv1beta1.Work, len(members))
	var reads []func(context.Context) error
	for i, member := range members {
		reads = append(reads, func(ctx context.Context) (err error) {
			found[i], err = h.WorksOf(ctx, placement, member)
			return err
		})
	}
	if err := together(ctx, reads...); err != nil {
		return nil, err
	}
	works := map[string][]placementv1beta1.Work{}
	for i, member := range members {
		works[member] = found[i]
	}
	return works, nil
}
