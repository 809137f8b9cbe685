// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// MaxOverrides is how many ClusterResourceOverrides a hub may have, and how many
// ResourceOverrides a namespace.
const MaxOverrides = 100

// Sentences that clients compare. They compare several of them in one answer, also
// with those that need other overrides: so none of these is a rule of the schema,
// which would answer first and alone.
const (
	tooManyClusterOverrides = "clusterResourceOverride limit has been reached: at most %d cluster resources can be created"
	tooManyOverrides        = "resourceOverride limit has been reached: at most %d resources can be created"
	overrideNeedsName       = "resource name is required for resource selection %+v"
	overrideNoLabels        = "label selector is not supported for resource selection %+v"
	selectorNotUnique       = "resource selector %+v already exists, and must be unique"
	selectedTwice           = "invalid resource selector %+v: the resource has been selected by both %v and %v, which is not supported"
	onlyLabels              = "only labelSelector is supported"
	labelsNeeded            = "labelSelector is required"
	deleteWithPatches       = "jsonPatchOverrides cannot be set when the override type is Delete"
	patchesEmpty            = "JSONPatchOverrides cannot be empty"
	pathEmpty               = "path cannot be empty"
	pathWithoutSlash        = "path must start with /"
	pathEmptyPart           = "path cannot contain empty string"
	pathTypeMeta            = "cannot override typeMeta fields"
	pathWholeMetadata       = "cannot override field metadata"
	pathMetadata            = "cannot override metadata fields except annotations and labels"
	pathStatus              = "cannot override status fields"
	removeWithValue         = "remove operation cannot have value"
)

// ValidateClusterResourceOverride returns the errors of an override, alone
// and beside all others of the hub; the override itself may be among them.
func ValidateClusterResourceOverride(override *placementv1beta1.ClusterResourceOverride, others []placementv1beta1.ClusterResourceOverride) field.ErrorList {
	path := field.NewPath("spec", "clusterResourceSelectors")
	var all field.ErrorList
	taken := map[placementv1beta1.ResourceSelectorTerm]string{}
	for i := range others {
		if others[i].Name != override.Name {
			take(taken, others[i].Spec.ClusterResourceSelectors, others[i].Name)
		}
	}
	if isNew(override.UID == "", override.Name, namesOf(others)) && len(others) >= MaxOverrides {
		all = append(all, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(tooManyClusterOverrides, MaxOverrides)))
	}
	seen := sets.New[placementv1beta1.ResourceSelectorTerm]()
	for i, selector := range override.Spec.ClusterResourceSelectors {
		at := path.Index(i)
		if selector.LabelSelector != nil {
			all = append(all, field.Forbidden(at.Child("labelSelector"), fmt.Sprintf(overrideNoLabels, selector)))
			continue
		}
		if selector.Name == "" {
			all = append(all, field.Required(at.Child("name"), fmt.Sprintf(overrideNeedsName, selector)))
			continue
		}
		all = append(all, validateUnique(selector, override.Name, seen, taken, at)...)
	}
	return append(all, validateOverridePolicy(override.Spec.Policy, field.NewPath("spec", "policy"))...)
}

// ValidateResourceOverride is the same for an override of one namespace, beside
// all others of that namespace.
func ValidateResourceOverride(override *placementv1beta1.ResourceOverride, others []placementv1beta1.ResourceOverride) field.ErrorList {
	path := field.NewPath("spec", "resourceSelectors")
	var all field.ErrorList
	taken, names := map[placementv1beta1.ResourceSelector]string{}, sets.New[string]()
	for i := range others {
		names.Insert(others[i].Name)
		if others[i].Name != override.Name {
			take(taken, others[i].Spec.ResourceSelectors, others[i].Name)
		}
	}
	if isNew(override.UID == "", override.Name, names) && len(others) >= MaxOverrides {
		all = append(all, field.Forbidden(field.NewPath("metadata", "name"), fmt.Sprintf(tooManyOverrides, MaxOverrides)))
	}
	seen := sets.New[placementv1beta1.ResourceSelector]()
	for i, selector := range override.Spec.ResourceSelectors {
		all = append(all, validateUnique(selector, override.Name, seen, taken, path.Index(i))...)
	}
	return append(all, validateOverridePolicy(override.Spec.Policy, field.NewPath("spec", "policy"))...)
}

// isNew is true for an override that does not count among the others yet.
func isNew(unsaved bool, name string, names sets.Set[string]) bool {
	return unsaved || !names.Has(name)
}

func namesOf(overrides []placementv1beta1.ClusterResourceOverride) sets.Set[string] {
	names := sets.New[string]()
	for i := range overrides {
		names.Insert(overrides[i].Name)
	}
	return names
}

// take notes which override has selected a resource, the first one that has.
func take[S comparable](taken map[S]string, selectors []S, by string) {
	for _, selector := range selectors {
		if _, done := taken[selector]; !done {
			taken[selector] = by
		}
	}
}

func validateUnique[S comparable](selector S, name string, seen sets.Set[S], taken map[S]string, path *field.Path) field.ErrorList {
	var all field.ErrorList
	if seen.Has(selector) {
		all = append(all, field.Invalid(path, selector, fmt.Sprintf(selectorNotUnique, selector)))
	}
	seen.Insert(selector)
	if other, found := taken[selector]; found {
		all = append(all, field.Invalid(path, selector, fmt.Sprintf(selectedTwice, selector, name, other)))
	}
	return all
}

func validateOverridePolicy(policy *placementv1beta1.OverridePolicy, path *field.Path) field.ErrorList {
	if policy == nil {
		return nil
	}
	var all field.ErrorList
	for i, rule := range policy.OverrideRules {
		at := path.Child("overrideRules").Index(i)
		all = append(all, validateMemberSelector(rule.ClusterSelector, at.Child("clusterSelector", "clusterSelectorTerms"))...)
		all = append(all, validatePatches(rule, at.Child("jsonPatchOverrides"))...)
	}
	return all
}

// validateMemberSelector: overrides choose members by labels only.
func validateMemberSelector(selector *placementv1beta1.ClusterSelector, path *field.Path) field.ErrorList {
	if selector == nil {
		return nil
	}
	var all field.ErrorList
	for i, term := range selector.ClusterSelectorTerms {
		at := path.Index(i)
		if term.PropertySelector != nil {
			all = append(all, field.Forbidden(at.Child("propertySelector"), onlyLabels))
		}
		if term.PropertySorter != nil {
			all = append(all, field.Forbidden(at.Child("propertySorter"), onlyLabels))
		}
		if term.LabelSelector == nil {
			all = append(all, field.Required(at.Child("labelSelector"), labelsNeeded))
		}
		all = append(all, validateLabelSelector(term.LabelSelector, "cluster selector", at.Child("labelSelector"))...)
	}
	return all
}

func validatePatches(rule placementv1beta1.OverrideRule, path *field.Path) field.ErrorList {
	if rule.OverrideType == placementv1beta1.DeleteOverrideType {
		if len(rule.JSONPatchOverrides) > 0 {
			return field.ErrorList{field.Forbidden(path, deleteWithPatches)}
		}
		return nil
	}
	if len(rule.JSONPatchOverrides) == 0 {
		return field.ErrorList{field.Required(path, patchesEmpty)}
	}
	var all field.ErrorList
	for i, patch := range rule.JSONPatchOverrides {
		at := path.Index(i)
		for _, problem := range patchPathProblems(patch.Path) {
			all = append(all, field.Invalid(at.Child("path"), patch.Path, problem))
		}
		if patch.Operator == placementv1beta1.JSONPatchRemove && len(patch.Value.Raw) > 0 {
			all = append(all, field.Forbidden(at.Child("value"), removeWithValue))
		}
	}
	return all
}

// patchPathProblems returns what keeps a JSON pointer from being a path into what
// an override may change: everything but what the object is, what its status is,
// and what its metadata says beside labels and annotations. Escapes (~0, ~1) stand
// for '~' and '/', so no other spelling of these names exists.
func patchPathProblems(path string) []string {
	if path == "" {
		return []string{pathEmpty}
	}
	rest, rooted := strings.CutPrefix(path, "/")
	if !rooted {
		return []string{pathWithoutSlash}
	}
	var problems []string
	parts := strings.Split(rest, "/")
	switch parts[0] {
	case "kind", "apiVersion":
		problems = append(problems, pathTypeMeta)
	case "metadata":
		if len(parts) == 1 {
			problems = append(problems, pathWholeMetadata)
		} else if parts[1] != "annotations" && parts[1] != "labels" {
			problems = append(problems, pathMetadata)
		}
	case "status":
		problems = append(problems, pathStatus)
	}
	if slices.ContainsFunc(parts, func(part string) bool { return strings.TrimSpace(part) == "" }) {
		problems = append(problems, pathEmptyPart)
	}
	return problems
}
