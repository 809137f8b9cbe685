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
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/placement/selection"
)

// maxUnreadable is the number of kinds that the condition names: a gateway with few rights cannot read
// most kinds of a namespace.
const maxUnreadable = 100

// maxFaulty is the number of kinds that it names with the hub's error.
const maxFaulty = 10

// containsAny reports whether a group has objects of one of the kinds. Objects that the next group lacks
// would be removed from the members, and an unreadable object may still exist.
func (r *Reconciler) containsAny(ctx context.Context, latest *metav1.PartialObjectMetadata, kinds []selection.Unreadable) (bool, error) {
	if latest == nil || len(kinds) == 0 {
		return false, nil
	}
	group, err := r.Snapshots.Group(ctx, client.ObjectKeyFromObject(latest))
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(group.Resources, func(id placementv1beta1.ResourceIdentifier) bool {
		return slices.ContainsFunc(kinds, func(u selection.Unreadable) bool { return u.Covers(id.Group, id.Version, id.Kind) })
	}), nil
}

// reportKinds writes the condition about unreadable kinds. stays is true if the placement's latest
// group stays because of them.
func (r *Reconciler) reportKinds(ctx context.Context, placement placementv1beta1.PlacementObject, unreadable []selection.Unreadable, stays bool) error {
	before := placement.DeepCopyObject().(client.Object)
	c := unreadableKinds(unreadable, stays)
	if !setOrRemove(&placement.GetStatus().Conditions, placementv1beta1.ConditionResourcesUnreadable, placement.GetGeneration(), c) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, placement, reconcileutil.PatchFrom(before)); err != nil {
		return fmt.Errorf("writing the status of placement %q: %w", placement.GetName(), err)
	}
	return nil
}

// unreadableKinds is nil if all kinds can be read. A fault of the hub takes precedence in the reason,
// because an administrator can have denied rights on purpose.
func unreadableKinds(unreadable []selection.Unreadable, stays bool) *metav1.Condition {
	if len(unreadable) == 0 {
		return nil
	}
	what := "None of these are placed"
	if stays {
		what = "Some of these are placed: because the gateway cannot tell whether they changed, members keep what they have and get no updates of the placement"
	}
	lacking, faulty := lackingRights(unreadable), faultyKinds(unreadable)
	switch {
	case faulty == "":
		return &metav1.Condition{Reason: placementv1beta1.ReasonGatewayForbidden, Message: fmt.Sprintf(lacking, what)}
	case lacking == "":
		return &metav1.Condition{Reason: placementv1beta1.ReasonKindUnavailable, Message: faulty + ". " + what}
	}
	return &metav1.Condition{Reason: placementv1beta1.ReasonKindUnavailable, Message: faulty + ". " + fmt.Sprintf(lacking, what)}
}

// lackingRights is a sentence about missing rights of the gateway, with a placeholder for the
// consequence, or empty.
func lackingRights(unreadable []selection.Unreadable) string {
	var names []string
	more := 0
	for _, u := range unreadable {
		switch {
		case u.Fault != "":
		case len(names) < maxUnreadable:
			names = append(names, u.String())
		default:
			more++
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("The gateway is not allowed to list and watch %s. %%s. To place them, label a ClusterRole that can list and watch them with %s=true, or bind one to the gateway's account; the gateway detects the change",
		text, placementv1beta1.PlaceableLabel)
}

// faultyKinds names the kinds that the hub cannot list, and the remedy, or is empty.
func faultyKinds(unreadable []selection.Unreadable) string {
	var names []string
	for _, u := range unreadable {
		if u.Fault != "" {
			names = append(names, fmt.Sprintf("%s (%s)", u, u.Fault))
		}
	}
	if len(names) == 0 {
		return ""
	}
	if more := len(names) - maxFaulty; more > 0 {
		names = append(names[:maxFaulty], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("The hub cannot read %s. Restore the conversion webhook or the API server behind it, or delete its CustomResourceDefinition or APIService; the gateway retries",
		strings.Join(names, ", "))
}
