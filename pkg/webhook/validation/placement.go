// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// Scopes tells of a kind on the hub whether it is namespaced; the error says
// that the hub does not serve it, or that it could not be found out.
type Scopes func(schema.GroupVersionKind) (namespaced bool, err error)

// Sentences that clients compare.
const (
	placementTypeImmutable = "placement type is immutable"
	tolerationsAppendOnly  = "tolerations have been updated/deleted, only additions to tolerations are allowed"
	unknownSelector        = "failed to get GVR of the selector"
	notClusterScoped       = "the resource is not found in schema (please retry) or it is not a cluster scoped resource: %v"
	notNamespaced          = "the resource is not found in schema (please retry) or it is a cluster scoped resource: %v"
	labelsInvalid          = "the labelSelector in %s %+v is invalid: %s"
)

// ValidatePlacement returns the errors of a placement; clusterScoped distinguishes
// a ClusterResourcePlacement from a ResourcePlacement.
func ValidatePlacement(meta *metav1.ObjectMeta, spec *placementv1beta1.PlacementSpec, clusterScoped bool, scopes Scopes) field.ErrorList {
	var all field.ErrorList
	if len(meta.Name) > placementv1beta1.PlacementNameMaxLength {
		all = append(all, field.TooLong(field.NewPath("metadata", "name"), "", placementv1beta1.PlacementNameMaxLength))
	}
	path := field.NewPath("spec")
	all = append(all, validateSelectors(spec.ResourceSelectors, clusterScoped, scopes, path.Child("resourceSelectors"))...)
	if spec.Policy != nil {
		all = append(all, validatePolicy(spec.Policy, path.Child("policy"))...)
	}
	return append(all, validateStrategy(&spec.Strategy, path.Child("strategy"))...)
}

// ValidatePlacementUpdate returns an error for each immutable field that an update changes. The
// older object is taken as it is stored; nobody is exempt.
func ValidatePlacementUpdate(older, newer *placementv1beta1.PlacementSpec) field.ErrorList {
	var all field.ErrorList
	path := field.NewPath("spec", "policy")
	if placementType(older.Policy) != placementType(newer.Policy) {
		all = append(all, field.Invalid(path.Child("placementType"), placementType(newer.Policy), placementTypeImmutable))
	}
	if !sets.New(tolerations(newer.Policy)...).HasAll(tolerations(older.Policy)...) {
		all = append(all, field.Invalid(path.Child("tolerations"), tolerations(newer.Policy), tolerationsAppendOnly))
	}
	return all
}

// placementType counts a missing policy as PickAll.
func placementType(policy *placementv1beta1.PlacementPolicy) placementv1beta1.PlacementType {
	if policy == nil || policy.PlacementType == "" {
		return placementv1beta1.PickAll
	}
	return policy.PlacementType
}

func tolerations(policy *placementv1beta1.PlacementPolicy) []placementv1beta1.Toleration {
	if policy == nil {
		return nil
	}
	return policy.Tolerations
}

func validateSelectors(selectors []placementv1beta1.ResourceSelectorTerm, clusterScoped bool, scopes Scopes, path *field.Path) field.ErrorList {
	var all field.ErrorList
	insideNamespace := slices.ContainsFunc(selectors, func(s placementv1beta1.ResourceSelectorTerm) bool {
		return s.Group == "" && s.Kind == "Namespace" && s.SelectionScope == placementv1beta1.NamespaceWithResourceSelectors
	})
	for i := range selectors {
		selector, at := &selectors[i], path.Index(i)
		if selector.Name != "" && selector.LabelSelector != nil {
			all = append(all, field.Invalid(at, selector.Name, "name and labelSelector are mutually exclusive in a resource selector"))
		}
		all = append(all, validateLabelSelector(selector.LabelSelector, "resource selector", at.Child("labelSelector"))...)
		kind := schema.GroupVersionKind{Group: selector.Group, Version: selector.Version, Kind: selector.Kind}
		namespaced, err := scopes(kind)
		switch {
		case err != nil:
			all = append(all, field.Invalid(at, kind.String(), fmt.Sprintf("%s: %v: install its CustomResourceDefinition on the hub first, or correct group, version and kind", unknownSelector, err)))
		case clusterScoped && namespaced && !insideNamespace:
			all = append(all, field.Invalid(at, kind.String(), fmt.Sprintf(notClusterScoped, kind)+": a ClusterResourcePlacement selects cluster-scoped resources: select the Namespace, which brings what is in it, or use a ResourcePlacement in that namespace"))
		case !clusterScoped && !namespaced:
			all = append(all, field.Invalid(at, kind.String(), fmt.Sprintf(notNamespaced, kind)+": a ResourcePlacement selects resources of its own namespace: use a ClusterResourcePlacement for cluster-scoped ones"))
		}
	}
	return all
}

// validateLabelSelector says of each problem in which kind of selector it is, and prints it, as clients compare it.
func validateLabelSelector(selector *metav1.LabelSelector, in string, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	all := metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
	for _, problem := range all {
		problem.Detail = fmt.Sprintf(labelsInvalid, in, selector, problem.Detail)
	}
	return all
}

func validatePolicy(policy *placementv1beta1.PlacementPolicy, path *field.Path) field.ErrorList {
	var all field.ErrorList
	switch placementType(policy) {
	case placementv1beta1.PickFixed:
		all = append(all, validatePickFixed(policy, path)...)
	case placementv1beta1.PickAll:
		all = append(all, forbidden(path, "PickAll", map[string]bool{
			"clusterNames":              len(policy.ClusterNames) > 0,
			"numberOfClusters":          policy.NumberOfClusters != nil,
			"topologySpreadConstraints": len(policy.TopologySpreadConstraints) > 0,
		})...)
		if prefersClusters(policy) {
			all = append(all, field.Forbidden(path.Child("affinity", "clusterAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
				"a placement of type PickAll takes every cluster: there is nothing to prefer"))
		}
	case placementv1beta1.PickN:
		all = append(all, forbidden(path, "PickN", map[string]bool{"clusterNames": len(policy.ClusterNames) > 0})...)
		if policy.NumberOfClusters == nil {
			all = append(all, field.Required(path.Child("numberOfClusters"), "a placement of type PickN says how many clusters it wants"))
		}
	}
	all = append(all, validateAffinity(policy.Affinity, path.Child("affinity", "clusterAffinity"))...)
	all = append(all, validateSpread(policy.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	return append(all, validateTolerations(policy.Tolerations, path.Child("tolerations"))...)
}

func prefersClusters(policy *placementv1beta1.PlacementPolicy) bool {
	return policy.Affinity != nil && policy.Affinity.ClusterAffinity != nil &&
		len(policy.Affinity.ClusterAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}

func validatePickFixed(policy *placementv1beta1.PlacementPolicy, path *field.Path) field.ErrorList {
	all := forbidden(path, "PickFixed", map[string]bool{
		"numberOfClusters":          policy.NumberOfClusters != nil,
		"affinity":                  policy.Affinity != nil,
		"topologySpreadConstraints": len(policy.TopologySpreadConstraints) > 0,
		"tolerations":               len(policy.Tolerations) > 0,
	})
	seen := sets.New[string]()
	for i, name := range policy.ClusterNames {
		at := path.Child("clusterNames").Index(i)
		for _, problem := range content.IsDNS1123Label(name) {
			all = append(all, field.Invalid(at, name, problem))
		}
		if seen.Has(name) {
			all = append(all, field.Duplicate(at, name))
		}
		seen.Insert(name)
	}
	return all
}

// forbidden returns an error for each set field, sorted by its name.
func forbidden(path *field.Path, placementType string, isSet map[string]bool) field.ErrorList {
	var all field.ErrorList
	for _, name := range sets.List(sets.KeySet(isSet)) {
		if isSet[name] {
			all = append(all, field.Forbidden(path.Child(name), "cannot be set when placementType is "+placementType))
		}
	}
	return all
}

func validateStrategy(strategy *placementv1beta1.RolloutStrategy, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if rolling := strategy.RollingUpdate; rolling != nil {
		at := path.Child("rollingUpdate")
		if strategy.Type == placementv1beta1.ExternalStrategy {
			all = append(all, field.Forbidden(at, "cannot be set when the strategy's type is External"))
		}
		all = append(all, validateLimit(rolling.MaxUnavailable, at.Child("maxUnavailable"))...)
		all = append(all, validateLimit(rolling.MaxSurge, at.Child("maxSurge"))...)
		if rolling.UnavailablePeriodSeconds != nil && *rolling.UnavailablePeriodSeconds < 0 {
			all = append(all, field.Invalid(at.Child("unavailablePeriodSeconds"), *rolling.UnavailablePeriodSeconds, "must be greater than or equal to 0"))
		}
	}
	if apply := strategy.ApplyStrategy; apply != nil && apply.ServerSideApplyConfig != nil && apply.Type != placementv1beta1.ServerSideApply {
		all = append(all, field.Forbidden(path.Child("applyStrategy", "serverSideApplyConfig"), "can only be set when the apply strategy's type is ServerSideApply"))
	}
	return all
}

func validateLimit(limit *intstr.IntOrString, path *field.Path) field.ErrorList {
	if limit == nil {
		return nil
	}
	value, err := intstr.GetScaledValueFromIntOrPercent(limit, 100, true)
	if err != nil {
		return field.ErrorList{field.Invalid(path, limit.String(), "must be a whole number or a percentage")}
	}
	if value < 0 {
		return field.ErrorList{field.Invalid(path, limit.String(), "must be greater than or equal to 0")}
	}
	return nil
}
