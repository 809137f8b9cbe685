// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
)

// Members is the selector of the labels of the clusters in a set: by its label, which a
// cluster has one of, or by a selector. An error says what is wrong with that.
func Members(set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	switch selector := set.Spec.ClusterSelector; selector.SelectorType {
	case clusterv1beta2.ExclusiveClusterSetLabel, "":
		return labels.SelectorFromSet(labels.Set{clusterv1.ClusterSetLabel: set.Name}), nil
	case clusterv1beta2.LabelSelector:
		if selector.LabelSelector == nil {
			// Of an API object, none selects nothing. Here none is all.
			return labels.Everything(), nil
		}
		selected, err := metav1.LabelSelectorAsSelector(selector.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("spec.clusterSelector.labelSelector of ManagedClusterSet %q: %w", set.Name, err)
		}
		return selected, nil
	default:
		return nil, fmt.Errorf("spec.clusterSelector.selectorType of ManagedClusterSet %q is %q, not %s or %s",
			set.Name, selector.SelectorType, clusterv1beta2.ExclusiveClusterSetLabel, clusterv1beta2.LabelSelector)
	}
}

// emptyCondition is what a set says of how many clusters it has. Clients print the message.
func emptyCondition(clusters int) metav1.Condition {
	if clusters == 0 {
		return metav1.Condition{
			Type: clusterv1beta2.ConditionEmpty, Status: metav1.ConditionTrue, Reason: clusterv1beta2.ReasonNoClusterMatched,
			Message: "No ManagedCluster selected",
		}
	}
	return metav1.Condition{
		Type: clusterv1beta2.ConditionEmpty, Status: metav1.ConditionFalse, Reason: clusterv1beta2.ReasonClustersSelected,
		Message: fmt.Sprintf("%d ManagedClusters selected", clusters),
	}
}

// boundCondition is what a binding says of whether its set is there.
func boundCondition(there bool) metav1.Condition {
	if there {
		return metav1.Condition{Type: clusterv1beta2.ConditionBound, Status: metav1.ConditionTrue, Reason: clusterv1beta2.ReasonClusterSetBound}
	}
	return metav1.Condition{Type: clusterv1beta2.ConditionBound, Status: metav1.ConditionFalse, Reason: clusterv1beta2.ReasonClusterSetNotFound}
}

// standing are the sets that are always there.
func standing() []*clusterv1beta2.ManagedClusterSet {
	set := func(name string, selector clusterv1beta2.ManagedClusterSelector) *clusterv1beta2.ManagedClusterSet {
		return &clusterv1beta2.ManagedClusterSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: selector},
		}
	}
	return []*clusterv1beta2.ManagedClusterSet{
		set(clusterv1beta2.DefaultSet, clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.ExclusiveClusterSetLabel}),
		set(clusterv1beta2.GlobalSet, clusterv1beta2.ManagedClusterSelector{SelectorType: clusterv1beta2.LabelSelector, LabelSelector: &metav1.LabelSelector{}}),
	}
}
