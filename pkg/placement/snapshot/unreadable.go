// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/routine"
)

// maxUnreadable is how many kinds the condition names: a narrowed gateway may not read
// most of those that a namespace could hold.
const maxUnreadable = 100

// holds reports whether a group has objects of one of the kinds. What is missing from the
// next group would be taken off the members, and what cannot be read is not known to be
// gone.
func (r *Reconciler) holds(ctx context.Context, latest *metav1.PartialObjectMetadata, kinds []selection.Kind) (bool, error) {
	if latest == nil || len(kinds) == 0 {
		return false, nil
	}
	group, err := r.Snapshots.Group(ctx, client.ObjectKeyFromObject(latest))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(group.Resources, func(id placementv1beta1.ResourceIdentifier) bool {
		return slices.ContainsFunc(kinds, func(kind selection.Kind) bool { return kind.Group == id.Group && kind.Kind == id.Kind })
	}), nil
}

// reportRights says on the placement which kinds the gateway may not read, and whether the
// placement stays as it is for that.
func (r *Reconciler) reportRights(ctx context.Context, placement placementv1beta1.PlacementObject, unreadable []selection.Kind, stays bool) error {
	before := placement.DeepCopyObject().(client.Object)
	c := lackingRights(unreadable, stays)
	if !setOrRemove(&placement.GetStatus().Conditions, placementv1beta1.ConditionResourcesUnreadable, placement.GetGeneration(), c) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, placement, routine.Since(before)); err != nil {
		return fmt.Errorf("writing the status of placement %q: %w", placement.GetName(), err)
	}
	return nil
}

func lackingRights(unreadable []selection.Kind, stays bool) *metav1.Condition {
	if len(unreadable) == 0 {
		return nil
	}
	names := make([]string, 0, maxUnreadable)
	for _, kind := range unreadable[:min(len(unreadable), maxUnreadable)] {
		names = append(names, kind.GVR().GroupResource().String())
	}
	text := strings.Join(names, ", ")
	if more := len(unreadable) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	what := "Nothing of these is placed"
	if stays {
		what = "Some of these are placed: as nobody knows what became of them, members keep what they have, and get no change of anything"
	}
	return &metav1.Condition{Reason: placementv1beta1.ReasonGatewayMayNot, Message: fmt.Sprintf(
		"The gateway may not list and watch %s. %s. If they are to be placed, label a ClusterRole that lists and watches them %s=true, or bind one to the gateway's account; it notices by itself",
		text, what, placementv1beta1.PlaceableLabel)}
}
