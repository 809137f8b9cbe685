// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

func validateAffinity(affinity *placementv1beta1.Affinity, path *field.Path) field.ErrorList {
	if affinity == nil || affinity.ClusterAffinity == nil {
		return nil
	}
	var all field.ErrorList
	if required := affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		at := path.Child("requiredDuringSchedulingIgnoredDuringExecution", "clusterSelectorTerms")
		for i := range required.ClusterSelectorTerms {
			all = append(all, validateRequiredTerm(&required.ClusterSelectorTerms[i], at.Index(i))...)
		}
	}
	for i := range affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred := &affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
		all = append(all, validatePreference(&preferred.Preference, path.Child("preferredDuringSchedulingIgnoredDuringExecution").Index(i).Child("preference"))...)
	}
	return all
}

func validateRequiredTerm(term *placementv1beta1.ClusterSelectorTerm, path *field.Path) field.ErrorList {
	all := validateLabelSelector(term.LabelSelector, "cluster selector", path.Child("labelSelector"))
	if term.PropertySorter != nil {
		all = append(all, field.Forbidden(path.Child("propertySorter"), "a required term filters clusters, it does not sort them"))
	}
	if term.PropertySelector == nil {
		return all
	}
	for i, requirement := range term.PropertySelector.MatchExpressions {
		all = append(all, validateRequirement(requirement, path.Child("propertySelector", "matchExpressions").Index(i))...)
	}
	return append(all, validateSatisfiable(term.PropertySelector.MatchExpressions, path.Child("propertySelector", "matchExpressions"))...)
}

func validatePreference(term *placementv1beta1.ClusterSelectorTerm, path *field.Path) field.ErrorList {
	all := validateLabelSelector(term.LabelSelector, "preferred cluster selector", path.Child("labelSelector"))
	if term.PropertySelector != nil {
		all = append(all, field.Forbidden(path.Child("propertySelector"), "a preferred term sorts clusters, it does not filter them"))
	}
	if term.PropertySorter != nil {
		all = append(all, validatePropertyName(term.PropertySorter.Name, path.Child("propertySorter", "name"))...)
	}
	return all
}

// validatePropertyName: names separated by slashes, after a subdomain as an optional prefix. Those of
// resources are label keys, and also say which of the three sums is meant.
func validatePropertyName(name string, path *field.Path) field.ErrorList {
	var all field.ErrorList
	parts := strings.Split(name, "/")
	if rest, ok := strings.CutPrefix(name, placementv1beta1.ResourcePropertyPrefix); ok {
		sum, resourceName, found := strings.Cut(rest, "-")
		if !found || resourceName == "" || !slices.Contains([]string{"total", "allocatable", "available"}, sum) {
			all = append(all, field.Invalid(path, name, "a resource property is "+placementv1beta1.ResourcePropertyPrefix+"{total|allocatable|available}-<resource>"))
		}
		parts = []string{name}
	} else if len(parts) > 1 && len(content.IsDNS1123Subdomain(parts[0])) == 0 {
		parts = parts[1:]
	}
	for _, part := range parts {
		for _, problem := range content.IsLabelKey(part) {
			all = append(all, field.Invalid(path, name, problem))
		}
	}
	return all
}

func validateRequirement(requirement placementv1beta1.PropertySelectorRequirement, path *field.Path) field.ErrorList {
	all := validatePropertyName(requirement.Name, path.Child("name"))
	operators := []placementv1beta1.PropertySelectorOperator{
		placementv1beta1.PropertySelectorGreaterThan, placementv1beta1.PropertySelectorGreaterOrEqualTo, placementv1beta1.PropertySelectorEqualTo,
		placementv1beta1.PropertySelectorNotEqualTo, placementv1beta1.PropertySelectorLessThan, placementv1beta1.PropertySelectorLessOrEqualTo,
	}
	if !slices.Contains(operators, requirement.Operator) {
		all = append(all, field.NotSupported(path.Child("operator"), requirement.Operator, operators))
	}
	if len(requirement.Values) != 1 {
		return append(all, field.Invalid(path.Child("values"), requirement.Values, "must be exactly one quantity"))
	}
	if _, err := untrusted.Quantity(requirement.Values[0]); err != nil {
		all = append(all, field.Invalid(path.Child("values").Index(0), requirement.Values[0], "must be a quantity, such as 4 or 16Gi"))
	}
	return all
}

// bounds are what the requirements on one property leave open.
type bounds struct {
	low, high         *resource.Quantity
	lowOpen, highOpen bool // The bound itself is excluded.
	equal             []resource.Quantity
	notEqual          []resource.Quantity
}

// validateSatisfiable finds properties of which the requirements exclude each other.
func validateSatisfiable(requirements []placementv1beta1.PropertySelectorRequirement, path *field.Path) field.ErrorList {
	byName := map[string]*bounds{}
	for _, requirement := range requirements {
		if len(requirement.Values) != 1 {
			continue // Reported already.
		}
		value, err := untrusted.Quantity(requirement.Values[0])
		if err != nil {
			continue // Reported already.
		}
		if byName[requirement.Name] == nil {
			byName[requirement.Name] = &bounds{}
		}
		byName[requirement.Name].add(requirement.Operator, value)
	}
	var all field.ErrorList
	for _, name := range sets.List(sets.KeySet(byName)) {
		if !byName[name].satisfiable() {
			all = append(all, field.Invalid(path, name, "no value of this property satisfies all of its requirements"))
		}
	}
	return all
}

func (b *bounds) add(operator placementv1beta1.PropertySelectorOperator, value resource.Quantity) {
	switch operator {
	case placementv1beta1.PropertySelectorGreaterThan:
		b.raise(value, true)
	case placementv1beta1.PropertySelectorGreaterOrEqualTo:
		b.raise(value, false)
	case placementv1beta1.PropertySelectorLessThan:
		b.lower(value, true)
	case placementv1beta1.PropertySelectorLessOrEqualTo:
		b.lower(value, false)
	case placementv1beta1.PropertySelectorEqualTo:
		b.equal = append(b.equal, value)
	case placementv1beta1.PropertySelectorNotEqualTo:
		b.notEqual = append(b.notEqual, value)
	}
}

func (b *bounds) raise(value resource.Quantity, open bool) {
	if b.low == nil || value.Cmp(*b.low) > 0 || value.Cmp(*b.low) == 0 && open {
		b.low, b.lowOpen = &value, open
	}
}

func (b *bounds) lower(value resource.Quantity, open bool) {
	if b.high == nil || value.Cmp(*b.high) < 0 || value.Cmp(*b.high) == 0 && open {
		b.high, b.highOpen = &value, open
	}
}

func (b *bounds) satisfiable() bool {
	if b.low != nil && b.high != nil {
		order := b.low.Cmp(*b.high)
		if order > 0 || order == 0 && (b.lowOpen || b.highOpen) {
			return false
		}
		if order == 0 && containsQuantity(b.notEqual, *b.low) {
			return false
		}
	}
	for _, value := range b.equal {
		if value.Cmp(b.equal[0]) != 0 || !b.within(value) || containsQuantity(b.notEqual, value) {
			return false
		}
	}
	return true
}

func (b *bounds) within(value resource.Quantity) bool {
	if b.low != nil && (value.Cmp(*b.low) < 0 || b.lowOpen && value.Cmp(*b.low) == 0) {
		return false
	}
	return b.high == nil || value.Cmp(*b.high) < 0 || !b.highOpen && value.Cmp(*b.high) == 0
}

func containsQuantity(quantities []resource.Quantity, value resource.Quantity) bool {
	return slices.ContainsFunc(quantities, func(q resource.Quantity) bool { return q.Cmp(value) == 0 })
}

func validateSpread(constraints []placementv1beta1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var all field.ErrorList
	type pair struct {
		key  string
		when placementv1beta1.UnsatisfiableConstraintAction
	}
	seen := sets.New[pair]()
	for i, constraint := range constraints {
		at := path.Index(i)
		for _, problem := range content.IsLabelKey(constraint.TopologyKey) {
			all = append(all, field.Invalid(at.Child("topologyKey"), constraint.TopologyKey, problem))
		}
		this := pair{constraint.TopologyKey, constraint.WhenUnsatisfiable}
		if seen.Has(this) {
			all = append(all, field.Duplicate(at, constraint.TopologyKey))
		}
		seen.Insert(this)
	}
	return all
}

func validateTolerations(tolerations []placementv1beta1.Toleration, path *field.Path) field.ErrorList {
	var all field.ErrorList
	seen := sets.New[placementv1beta1.Toleration]()
	for i, toleration := range tolerations {
		at := path.Index(i)
		if toleration.Key != "" {
			for _, problem := range content.IsLabelKey(toleration.Key) {
				all = append(all, field.Invalid(at.Child("key"), toleration.Key, problem))
			}
		}
		for _, problem := range content.IsLabelValue(toleration.Value) {
			all = append(all, field.Invalid(at.Child("value"), toleration.Value, problem))
		}
		if toleration.Key == "" && toleration.Operator != corev1.TolerationOpExists {
			all = append(all, field.Invalid(at.Child("operator"), toleration.Operator, "operator must be Exists when key is empty"))
		}
		if seen.Has(toleration) {
			all = append(all, field.Duplicate(at, toleration.Key))
		}
		seen.Insert(toleration)
	}
	return all
}
