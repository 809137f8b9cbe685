// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/plugins/clustereligibility"
)

// memberChanges lets changes of a member pass that can change a decision. Most
// updates are heartbeats, which cannot.
func memberChanges(now clock.PassiveClock) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1beta1.MemberCluster)
			after, also := e.ObjectNew.(*clusterv1beta1.MemberCluster)
			return ok && also && decisive(before, after, now.Now())
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// decisive compares two states of a member.
func decisive(before, after *clusterv1beta1.MemberCluster, now time.Time) bool {
	was, is := ClusterOf(before), ClusterOf(after)
	if was.Leaving != is.Leaving || !maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Properties, is.Properties) {
		return true
	}
	if !slices.Equal(was.Taints, is.Taints) {
		return true
	}
	return clustereligibility.Ineligible(&was, now) != "" && clustereligibility.Ineligible(&is, now) == ""
}

// policyChanges lets everything about a policy snapshot pass but its status.
func policyChanges() predicate.Predicate {
	return predicate.Or[client.Object](
		predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
}

// bindingDeletions lets pass that a binding begins to go, or is gone.
func bindingDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.Object.GetDeletionTimestamp() != nil },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
