// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/failover"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// unserved is the error for a policy that cannot be carried out. Its text is for the policy snapshot's
// condition.
func unserved(format string, args ...any) error {
	return refusal.New(placementv1beta1.ReasonSchedulingPolicyUnfulfilled, format, args...)
}

// PolicyOf translates the policy of a placement; a nil policy picks all. The namespace is empty for a
// cluster-scoped placement. The error is a refusal.
func PolicyOf(policy *placementv1beta1.PlacementPolicy, namespace string) (*framework.Policy, error) {
	if policy == nil {
		return &framework.Policy{Kind: framework.PickAll, Namespace: namespace}, nil
	}
	translated := &framework.Policy{
		Names: policy.ClusterNames, Namespace: namespace,
		Tolerations: tolerationsOf(policy.Tolerations), Spread: spreadOf(policy.TopologySpreadConstraints),
	}
	switch policy.PlacementType {
	case placementv1beta1.PickAll, "":
		translated.Kind = framework.PickAll
	case placementv1beta1.PickFixed:
		translated.Kind = framework.PickFixed
	case placementv1beta1.PickN:
		if policy.NumberOfClusters == nil {
			return nil, unserved("placement type PickN needs numberOfClusters")
		}
		translated.Kind, translated.Count = framework.PickN, int(*policy.NumberOfClusters)
	default:
		return nil, unserved("unknown placement type %q; use PickAll, PickFixed or PickN", policy.PlacementType)
	}
	if policy.Affinity == nil || policy.Affinity.ClusterAffinity == nil {
		return translated, nil
	}
	return translated, affinity(policy.Affinity.ClusterAffinity, translated)
}

// policyOf translates the policy of a snapshot. PickN's number of clusters is in an annotation, because
// scaling creates no new snapshot. Snapshots of another product have the number only there.
func policyOf(s placementv1beta1.PolicySnapshotObject) (*framework.Policy, error) {
	policy := s.GetSpec().Policy
	text, counted := s.GetAnnotations()[placementv1beta1.NumberOfClustersAnnotation]
	if counted && policy != nil && policy.PlacementType == placementv1beta1.PickN {
		count, err := strconv.ParseInt(text, 10, 32)
		if err != nil || count < 0 {
			return nil, unserved("annotation %s is %q, which is not a number of clusters", placementv1beta1.NumberOfClustersAnnotation, text)
		}
		policy = policy.DeepCopy()
		policy.NumberOfClusters = ptr.To(int32(count))
	}
	return PolicyOf(policy, s.GetNamespace())
}

// AddTerms excludes members that the placement's failover terms would make it leave. Package failover
// reports invalid terms.
func AddTerms(policy *framework.Policy, placement metav1.Object) {
	terms, _ := failover.TermsOf(placement.GetAnnotations())
	policy.Silence, policy.Avoid = terms.After, terms.Taints
}

func affinity(affinity *placementv1beta1.ClusterAffinity, policy *framework.Policy) error {
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i, term := range required.ClusterSelectorTerms {
			t, err := termOf(term)
			if err != nil {
				return unserved("required cluster selector term %d: %v", i, err)
			}
			policy.Required = append(policy.Required, t)
		}
	}
	for i, preferred := range affinity.PreferredDuringSchedulingIgnoredDuringExecution {
		p, err := preferenceOf(preferred)
		if err != nil {
			return unserved("preferred cluster selector term %d: %v", i, err)
		}
		policy.Preferred = append(policy.Preferred, p)
	}
	return nil
}

func preferenceOf(preferred placementv1beta1.PreferredClusterSelector) (framework.Preference, error) {
	p := framework.Preference{Weight: preferred.Weight}
	if preferred.Preference.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(preferred.Preference.LabelSelector)
		if err != nil {
			return p, fmt.Errorf("labelSelector: %w", err)
		}
		p.Labels = selector
	}
	if sorter := preferred.Preference.PropertySorter; sorter != nil {
		p.SortBy, p.Ascending = sorter.Name, sorter.SortOrder == placementv1beta1.Ascending
	}
	return p, nil
}

func spreadOf(constraints []placementv1beta1.TopologySpreadConstraint) []framework.SpreadConstraint {
	translated := make([]framework.SpreadConstraint, 0, len(constraints))
	for _, c := range constraints {
		translated = append(translated, framework.SpreadConstraint{
			Label: c.TopologyKey, MaxSkew: int(ptr.Deref(c.MaxSkew, 1)), Soft: c.WhenUnsatisfiable == placementv1beta1.ScheduleAnyway,
		})
	}
	return translated
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
	value, err := untrusted.Quantity(e.Values[0])
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

// holdingsOf translates the placement's bindings. policySnapshot is the name of the current one.
// Bindings of an earlier placement of the same name do not conflict, because new bindings have other
// names.
func holdingsOf(placement metav1.Object, bindings []placementv1beta1.BindingObject, policySnapshot string) []framework.Holding {
	mine := slices.DeleteFunc(slices.Clone(bindings), func(b placementv1beta1.BindingObject) bool {
		return b.GetDeletionTimestamp() != nil && b.GetName() != bindingName(placement.GetName(), placement.GetUID(), b.GetSpec().TargetCluster)
	})
	holdings := HoldingsOf(mine)
	for i, b := range mine {
		holdings[i].Current = b.GetSpec().SchedulingPolicySnapshotName == policySnapshot
	}
	return holdings
}

// HoldingsOf translates bindings one by one, without deciding whether they are of the current policy.
func HoldingsOf(bindings []placementv1beta1.BindingObject) []framework.Holding {
	holdings := make([]framework.Holding, 0, len(bindings))
	for _, b := range bindings {
		spec := b.GetSpec()
		state := framework.State(spec.State)
		if b.GetDeletionTimestamp() != nil {
			state = framework.Terminating
		}
		holdings = append(holdings, framework.Holding{Cluster: spec.TargetCluster, State: state, Score: scoreOf(spec.ClusterDecision.ClusterScore)})
	}
	return holdings
}

func scoreOf(score *placementv1beta1.ClusterScore) *framework.Score {
	if score == nil {
		return nil
	}
	return &framework.Score{Affinity: ptr.Deref(score.AffinityScore, 0), Spread: ptr.Deref(score.TopologySpreadScore, 0)}
}
