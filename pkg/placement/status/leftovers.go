// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

// maxLeftovers limits the members that the condition names.
const maxLeftovers = 5

// leftovers are the objects of a placement that members retain since it no longer selects them, by
// member, as their agents report.
func (r *Reconciler) leftovers(ctx context.Context, key types.NamespacedName) (map[string]retention.Leftover, error) {
	var members clusterv1beta1.InternalMemberClusterList
	if err := r.Client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing what members retain: %w", err)
	}
	origin := retention.OriginOf(key.Namespace, key.Name)
	found := map[string]retention.Leftover{}
	for i := range members.Items {
		member := &members.Items[i]
		text := retainedOn(member)
		if !strings.Contains(text, key.Name) || member.Namespace != clusterv1beta1.MemberNamespace(member.Name) {
			continue
		}
		if of := retention.ParseLeftovers(text)[origin]; of.Objects > 0 {
			found[member.Name] = of
		}
	}
	return found, nil
}

func retainedOn(member *clusterv1beta1.InternalMemberCluster) string {
	return member.Status.Properties[clusterv1beta1.PropertyRetained].Value
}

// leftoverPlacements are the placements of which a member retains objects.
func leftoverPlacements(object client.Object) []types.NamespacedName {
	member, ok := object.(*clusterv1beta1.InternalMemberCluster)
	if !ok {
		return nil
	}
	var keys []types.NamespacedName
	for origin := range retention.ParseLeftovers(retainedOn(member)) {
		if namespace, name, ok := retention.PlacementOf(origin); ok {
			keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return keys
}

// retainedChanges passes members whose retained objects changed.
func retainedChanges() predicate.Predicate {
	return enqueue.Updates(func(before, after *clusterv1beta1.InternalMemberCluster) bool {
		return retainedOn(before) != retainedOn(after)
	})
}

// retained sets the condition about leftovers, or removes it.
func (c *computation) retained() {
	if len(c.Leftovers) == 0 {
		meta.RemoveStatusCondition(&c.status.Conditions, placementv1beta1.ConditionDataRetained)
		return
	}
	members := slices.Sorted(maps.Keys(c.Leftovers))
	var texts []string
	for _, name := range members[:min(len(members), maxLeftovers)] {
		of := c.Leftovers[name]
		text := fmt.Sprintf("%q has %s", name, strings.Join(of.Examples, ", "))
		if more := of.Objects - len(of.Examples); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		texts = append(texts, text)
	}
	if more := len(members) - maxLeftovers; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more members have some", more))
	}
	meta.SetStatusCondition(&c.status.Conditions, metav1.Condition{
		Type: placementv1beta1.ConditionDataRetained, Status: metav1.ConditionTrue, ObservedGeneration: c.Placement.GetGeneration(),
		Reason: placementv1beta1.ReasonNoLongerSelected,
		Message: fmt.Sprintf("%d members retain objects since the placement no longer selects them: %s. "+
			"Select the members again, or release the objects with \"kubectl fleetgate retained release\", or delete them on the members", len(members), strings.Join(texts, "; ")),
	})
}
