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

// Members is the label selector of the clusters in a set: its own label, of which a cluster has
// only one, or a selector. An error says why the selector is invalid.
func Members(set *clusterv1beta2.ManagedClusterSet) (labels.Selector, error) {
	switch selector := set.Spec.ClusterSelector; selector.SelectorType {
	case clusterv1beta2.ExclusiveClusterSetLabel, "":
		return labels.SelectorFromSet(labels.Set{clusterv1.ClusterSetLabel: set.Name}), nil
	case clusterv1beta2.LabelSelector:
		if selector.LabelSelector == nil {
			// As an API object, an empty selector selects nothing. Here it selects all.
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

// emptyCondition is the condition about the number of clusters in a set. Clients print the message.
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

// boundCondition is the condition of a binding about the existence of its set.
func boundCondition(there bool) metav1.Condition {
	if there {
		return metav1.Condition{Type: clusterv1beta2.ConditionBound, Status: metav1.ConditionTrue, Reason: clusterv1beta2.ReasonClusterSetBound}
	}
	return metav1.Condition{Type: clusterv1beta2.ConditionBound, Status: metav1.ConditionFalse, Reason: clusterv1beta2.ReasonClusterSetNotFound}
}

func builtInSets() []*clusterv1beta2.ManagedClusterSet {
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
