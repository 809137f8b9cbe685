// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// policyError is a policy that cannot be carried out as it is. Its text is for
// the policy snapshot's condition.
type policyError struct{ message string }

func (e *policyError) Error() string { return e.message }

func unserved(format string, args ...any) error {
	return &policyError{message: fmt.Sprintf(format, args...)}
}

// PolicyOf translates a policy; nil picks all. The error's text is for the
// user.
func PolicyOf(policy *placementv1beta1.PlacementPolicy) (*framework.Policy, error) {
	if policy == nil {
		return &framework.Policy{Kind: framework.PickAll}, nil
	}
	translated := &framework.Policy{Names: policy.ClusterNames, Tolerations: tolerationsOf(policy.Tolerations)}
	switch policy.PlacementType {
	case placementv1beta1.PickAll, "":
		translated.Kind = framework.PickAll
	case placementv1beta1.PickFixed:
		translated.Kind = framework.PickFixed
	default:
		return nil, unserved("placement type %s is not served by this version of the gateway; use PickAll or PickFixed", policy.PlacementType)
	}
	for i, term := range requiredTerms(policy) {
		t, err := termOf(term)
		if err != nil {
			return nil, unserved("required cluster selector term %d: %v", i, err)
		}
		translated.Required = append(translated.Required, t)
	}
	return translated, nil
}

func requiredTerms(policy *placementv1beta1.PlacementPolicy) []placementv1beta1.ClusterSelectorTerm {
	if policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return nil
	}
	required := policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return nil
	}
	return required.ClusterSelectorTerms
}

func termOf(term placementv1beta1.ClusterSelectorTerm) (framework.Term, error) {
	var t framework.Term
	if term.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			return t, fmt.Errorf("labelSelector: %w", err)
		}
		t.Labels = selector
	}
	if term.PropertySelector == nil {
		return t, nil
	}
	for _, expression := range term.PropertySelector.MatchExpressions {
		requirement, err := requirementOf(expression)
		if err != nil {
			return t, fmt.Errorf("property %q: %w", expression.Name, err)
		}
		t.Properties = append(t.Properties, requirement)
	}
	return t, nil
}

func requirementOf(e placementv1beta1.PropertySelectorRequirement) (framework.PropertyRequirement, error) {
	operator := framework.Operator(e.Operator)
	if !operator.Known() {
		return framework.PropertyRequirement{}, fmt.Errorf("unknown operator %q", e.Operator)
	}
	if len(e.Values) != 1 {
		return framework.PropertyRequirement{}, fmt.Errorf("%d values where exactly one is needed", len(e.Values))
	}
	value, err := resource.ParseQuantity(e.Values[0])
	if err != nil {
		return framework.PropertyRequirement{}, fmt.Errorf("value %q is not a quantity", e.Values[0])
	}
	return framework.PropertyRequirement{Name: e.Name, Operator: operator, Value: value}, nil
}

func tolerationsOf(tolerations []placementv1beta1.Toleration) []framework.Toleration {
	translated := make([]framework.Toleration, 0, len(tolerations))
	for _, t := range tolerations {
		translated = append(translated, framework.Toleration{
			Key: t.Key, Exists: t.Operator == corev1.TolerationOpExists, Value: t.Value, Effect: string(t.Effect),
		})
	}
	return translated
}

// ClusterOf translates a member.
func ClusterOf(member *clusterv1beta1.MemberCluster) framework.Cluster {
	cluster := framework.Cluster{
		Name: member.Name, Labels: member.Labels,
		Leaving:    member.DeletionTimestamp != nil,
		Properties: propertiesOf(&member.Status),
		Agent:      agentOf(&member.Status),
	}
	for _, t := range member.Spec.Taints {
		cluster.Taints = append(cluster.Taints, framework.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return cluster
}

func agentOf(status *clusterv1beta1.MemberClusterStatus) framework.Agent {
	reported := status.AgentStatusOf(clusterv1beta1.MemberAgent)
	if reported == nil {
		return framework.Agent{}
	}
	agent := framework.Agent{
		Reported:      true,
		LastHeartbeat: reported.LastReceivedHeartbeat.Time,
		Joined:        meta.IsStatusConditionTrue(reported.Conditions, clusterv1beta1.ConditionJoined),
	}
	if health := meta.FindStatusCondition(reported.Conditions, clusterv1beta1.ConditionHealthy); health != nil {
		agent.Health, agent.HealthSince = framework.Unhealthy, health.LastTransitionTime.Time
		if health.Status == metav1.ConditionTrue {
			agent.Health = framework.Healthy
		}
	}
	return agent
}

// propertiesOf puts reported properties and those that stand for resources into
// one map.
func propertiesOf(status *clusterv1beta1.MemberClusterStatus) map[string]string {
	properties := make(map[string]string, len(status.Properties))
	for name, property := range status.Properties {
		properties[string(name)] = property.Value
	}
	usage := status.ResourceUsage
	for kind, list := range map[string]corev1.ResourceList{"total-": usage.Capacity, "allocatable-": usage.Allocatable, "available-": usage.Available} {
		for name, quantity := range list {
			properties[placementv1beta1.ResourcePropertyPrefix+kind+string(name)] = quantity.String()
		}
	}
	return properties
}

// holdingsOf translates the placement's bindings. policySnapshot is the name of
// the current one. What is left of an earlier placement of the same name is in
// nobody's way: the new binding has another name.
func holdingsOf(placement metav1.Object, bindings []placementv1beta1.BindingObject, policySnapshot string) []framework.Holding {
	holdings := make([]framework.Holding, 0, len(bindings))
	for _, b := range bindings {
		spec := b.GetSpec()
		state := framework.State(spec.State)
		if b.GetDeletionTimestamp() != nil {
			if b.GetName() != bindingName(placement.GetName(), placement.GetUID(), spec.TargetCluster) {
				continue
			}
			state = framework.Terminating
		}
		holdings = append(holdings, framework.Holding{
			Cluster: spec.TargetCluster, State: state, Current: spec.SchedulingPolicySnapshotName == policySnapshot,
		})
	}
	return holdings
}
