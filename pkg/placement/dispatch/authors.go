// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Authors limits deliveries to what the placement's current author is allowed to deliver. A snapshot
// was taken under the author check of its time. Without this limit, a later author could roll an old
// snapshot out to members of their choice. nil disables the limit.
type Authors struct {
	// Resource finds the resource of a kind of the hub, and false if the hub does not serve it.
	Resource func(schema.GroupKind) (schema.GroupResource, bool, error)
}

// mayHave rejects the group of a snapshot that the placement's author check does not cover. A member
// whose Works (have) are from that snapshot already has it, and keeps it until the rollout reaches the
// member.
func (a *Authors) mayHave(placement placementv1beta1.PlacementObject, master string, group *snapshot.Group, have []*placementv1beta1.Work) error {
	if a == nil || placement == nil {
		return nil
	}
	result, checked := placement.GetAnnotations()[placementv1beta1.AuthorMayAnnotation]
	if !checked || slices.ContainsFunc(have, func(w *placementv1beta1.Work) bool {
		return w.Annotations[placementv1beta1.ParentResourceSnapshotNameAnnotation] == master
	}) {
		return nil
	}
	bound := selection.ParseBound(result)
	for _, id := range group.Resources {
		covered, err := a.covers(bound, id)
		if err != nil {
			return err
		}
		if !covered {
			return unsent("nothing of resource snapshot %q is sent, because it holds %s %q: user %q, who last changed the placement, is not known to be allowed to deliver it. "+
				"Roll out the current selection, or have a user who can get or place it repeat the check: kubectl annotate --overwrite <placement> %s=ask",
				master, schema.GroupKind{Group: id.Group, Kind: id.Kind}, id.Name, bound.Author, placementv1beta1.AuthorMayAnnotation)
		}
	}
	return nil
}

// covers reports whether an author check covers an object. A kind that the hub does not serve is
// covered only if the check covers everything.
func (a *Authors) covers(bound *selection.Bound, id placementv1beta1.ResourceIdentifier) (bool, error) {
	if bound.Covers(schema.GroupResource{}, id.Namespace, id.Name) {
		return true, nil
	}
	kind := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	resource, served, err := a.Resource(kind)
	if err != nil {
		return false, fmt.Errorf("looking up %s: %w", kind, err)
	}
	return served && bound.Covers(resource, id.Namespace, id.Name), nil
}
