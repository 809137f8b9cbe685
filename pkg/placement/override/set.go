// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"cmp"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/naming"
)

// Member is the input of rules and variables.
type Member struct {
	Name   string
	Labels map[string]string
	// Annotations and Properties are for variables only.
	Annotations, Properties map[string]string
}

// Override is one snapshot of an override of either kind.
type Override struct {
	// Snapshot is the snapshot's name; without a namespace it is of a ClusterResourceOverride.
	Snapshot types.NamespacedName
	// name is the override's name.
	name string
	// placement is the only placement that it applies to, or nil.
	placement *placementv1beta1.PlacementRef
	targets   []placementv1beta1.ResourceIdentifier
	rules     []placementv1beta1.OverrideRule
	// deletesOn is DeletesOnAnnotation, and recent RecentRemovalsAnnotation.
	deletesOn sets.Set[string]
	recent    string
}

// OfCluster is an override of cluster-scoped resources.
func OfCluster(s *placementv1beta1.ClusterResourceOverrideSnapshot) Override {
	o := untargeted(s, s.Spec.OverrideSpec.Placement, s.Spec.OverrideSpec.Policy)
	for _, t := range s.Spec.OverrideSpec.ClusterResourceSelectors {
		o.targets = append(o.targets, placementv1beta1.ResourceIdentifier{Group: t.Group, Version: t.Version, Kind: t.Kind, Name: t.Name})
	}
	return o
}

// OfNamespace is an override of resources of its own namespace.
func OfNamespace(s *placementv1beta1.ResourceOverrideSnapshot) Override {
	o := untargeted(s, s.Spec.OverrideSpec.Placement, s.Spec.OverrideSpec.Policy)
	for _, t := range s.Spec.OverrideSpec.ResourceSelectors {
		o.targets = append(o.targets, placementv1beta1.ResourceIdentifier{
			Group: t.Group, Version: t.Version, Kind: t.Kind, Name: t.Name, Namespace: s.Namespace,
		})
	}
	return o
}

// untargeted is an override without its targets.
func untargeted(snapshot client.Object, placement *placementv1beta1.PlacementRef, policy *placementv1beta1.OverridePolicy) Override {
	o := Override{
		Snapshot:  client.ObjectKeyFromObject(snapshot),
		name:      naming.Labelled(snapshot, placementv1beta1.ParentOverrideLabel),
		placement: placement, deletesOn: deletesOn(snapshot), recent: snapshot.GetAnnotations()[placementv1beta1.RecentRemovalsAnnotation],
	}
	if policy != nil {
		o.rules = policy.OverrideRules
	}
	return o
}

// Set is a list of overrides in the order in which they are applied.
type Set []Override

// NewSet sorts overrides: cluster-scoped ones first, then by the overrides' names.
func NewSet(overrides ...Override) Set {
	s := Set(slices.Clone(overrides))
	slices.SortFunc(s, func(a, b Override) int {
		return cmp.Or(
			cmp.Compare(a.Snapshot.Namespace, b.Snapshot.Namespace),
			cmp.Compare(a.name, b.name),
			cmp.Compare(a.Snapshot.Name, b.Snapshot.Name),
		)
	})
	return s
}

// With returns the overrides of both sets.
func (s Set) With(others ...Override) Set {
	all := slices.Clone(s)
	for _, o := range others {
		if !slices.ContainsFunc(s, func(has Override) bool { return has.Snapshot == o.Snapshot }) {
			all = append(all, o)
		}
	}
	return NewSet(all...)
}

// For returns the overrides that can change one of a placement's resources.
func (s Set) For(placement types.NamespacedName, resources []placementv1beta1.ResourceIdentifier) Set {
	var chosen Set
	for _, o := range s {
		if o.isFor(placement) && slices.ContainsFunc(resources, o.concerns) {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

// Foreign returns the first override that is for another placement than this one, or nil.
func (s Set) Foreign(placement types.NamespacedName) *Override {
	for i := range s {
		if !s[i].isFor(placement) {
			return &s[i]
		}
	}
	return nil
}

// isFor reports whether the override applies to this placement; without a placement it applies to all.
func (o Override) isFor(placement types.NamespacedName) bool {
	if o.placement == nil {
		return true
	}
	if o.placement.Name != placement.Name {
		return false
	}
	if o.placement.Scope == apiextensionsv1.NamespaceScoped {
		return placement.Namespace != "" && placement.Namespace == o.Snapshot.Namespace
	}
	return placement.Namespace == ""
}

// concerns reports whether the override targets this resource, directly or through its namespace.
func (o Override) concerns(resource placementv1beta1.ResourceIdentifier) bool {
	resource.Envelope = nil
	return slices.ContainsFunc(o.targets, func(target placementv1beta1.ResourceIdentifier) bool {
		if target == resource {
			return true
		}
		return target.Group == "" && target.Kind == "Namespace" && resource.Namespace != "" && target.Name == resource.Namespace
	})
}

// On returns the overrides with a rule that selects the member, and those with an invalid selector.
// Apply then returns an error for the condition of the member, which users watch.
func (s Set) On(member Member) Set {
	var chosen Set
	for _, o := range s {
		if rules, err := o.rulesFor(member); err != nil || len(rules) > 0 {
			chosen = append(chosen, o)
		}
	}
	return chosen
}

// Names are the snapshots in the form that bindings list.
func (s Set) Names() (cluster []string, namespaced []placementv1beta1.NamespacedName) {
	for _, o := range s {
		if o.Snapshot.Namespace == "" {
			cluster = append(cluster, o.Snapshot.Name)
		} else {
			namespaced = append(namespaced, placementv1beta1.NamespacedName{Namespace: o.Snapshot.Namespace, Name: o.Snapshot.Name})
		}
	}
	return cluster, namespaced
}

// rulesFor are the rules that select the member, in order.
func (o Override) rulesFor(member Member) ([]placementv1beta1.OverrideRule, error) {
	var chosen []placementv1beta1.OverrideRule
	for i, rule := range o.rules {
		chooses, err := choosesMember(rule.ClusterSelector, member)
		if err != nil {
			return nil, fmt.Errorf("override snapshot %q, rule %d: %w", o.Snapshot, i, err)
		}
		if chooses {
			chosen = append(chosen, rule)
		}
	}
	return chosen, nil
}

// choosesMember evaluates a selector: nil selects no member, a selector without terms every member.
// Otherwise one term has to match.
func choosesMember(selector *placementv1beta1.ClusterSelector, member Member) (bool, error) {
	if selector == nil {
		return false, nil
	}
	for _, term := range selector.ClusterSelectorTerms {
		if term.LabelSelector == nil {
			continue // Admission requires one; without it a term has no meaning.
		}
		s, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			return false, fmt.Errorf("reading clusterSelector: %w", err)
		}
		if s.Matches(labels.Set(member.Labels)) {
			return true, nil
		}
	}
	return len(selector.ClusterSelectorTerms) == 0, nil
}
