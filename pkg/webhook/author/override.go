// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// OfClusterOverride returns the questions for a ClusterResourceOverride. One for a Namespace
// affects everything in it. The placement that uses an override does not matter, because it selects
// the same objects. The error means that a kind could not be looked up.
func OfClusterOverride(spec *placementv1beta1.ClusterResourceOverrideSpec, resources Resources) ([]Question, error) {
	var all []Question
	for i, s := range spec.ClusterResourceSelectors {
		path := field.NewPath("spec", "clusterResourceSelectors").Index(i)
		questions, err := overriding(path, schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}, "", s.Name, resources)
		if err != nil {
			return nil, err
		}
		all = append(all, questions...)
		if s.Group != "" || s.Kind != "Namespace" {
			continue
		}
		all = append(all, overridingContents(path, s.Name)...)
		if changesValues(spec.Policy) {
			all = append(all, rendering(path, "ConfigMap", s.Name, ""), rendering(path, "Secret", s.Name, ""))
		}
	}
	return all, nil
}

// OfOverride is the same for a ResourceOverride in a namespace.
func OfOverride(namespace string, spec *placementv1beta1.ResourceOverrideSpec, resources Resources) ([]Question, error) {
	var all []Question
	for i, s := range spec.ResourceSelectors {
		path := field.NewPath("spec", "resourceSelectors").Index(i)
		questions, err := overriding(path, schema.GroupVersionKind{Group: s.Group, Version: s.Version, Kind: s.Kind}, namespace, s.Name, resources)
		if err != nil {
			return nil, err
		}
		all = append(all, questions...)
		if _, isChart := chartKinds[s.Kind]; isChart && s.Group == "" && changesValues(spec.Policy) {
			all = append(all, rendering(path, s.Kind, namespace, s.Name))
		}
	}
	return all, nil
}

// chartKinds are the resources of the core group that may describe a Helm chart, by their kinds.
var chartKinds = map[string]string{"ConfigMap": "configmaps", "Secret": "secrets"}

// changesValues is true if rules change the values of a chart, in a ConfigMap or a Secret that
// describes one: a key of that name, or all keys at once. Nothing else of a chart can be overridden
// (helmchart.ValuesOnly).
func changesValues(policy *placementv1beta1.OverridePolicy) bool {
	if policy == nil {
		return false
	}
	for _, rule := range policy.OverrideRules {
		for _, patch := range rule.JSONPatchOverrides {
			field, key, _ := strings.Cut(strings.TrimPrefix(patch.Path, "/"), "/")
			if (field == "data" || field == "binaryData") && (key == "" || key == helmchart.KeyValues) {
				return true
			}
		}
	}
	return false
}

// rendering is the permission to render a chart from an object, or without a name from any of its
// kind in the namespace: with other values, templates can produce anything. It is required even if
// the object does not describe a chart, since it may a moment later.
func rendering(path *field.Path, kind, namespace, name string) Question {
	return needs(path, Access{Verb: placementv1beta1.RenderVerb, Resource: chartKinds[kind], Namespace: namespace, Name: name})
}

// overriding is the permission to change an object, or without a name all of its kind. Objects in
// envelopes are overridden by their own kind, so they are checked like others. A kind that the hub
// does not serve can only be in an envelope, and requires its whole group in all namespaces.
func overriding(path *field.Path, kind schema.GroupVersionKind, namespace, name string, resources Resources) ([]Question, error) {
	if reserved.ChecksWriter(kind.GroupKind()) {
		return []Question{needs(path, Access{Verb: "update", Group: anything, Resource: anything})}, nil
	}
	resource, served, err := resources(kind)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", kind, err)
	}
	if !served {
		return []Question{needs(path, Access{Verb: "update", Group: kind.Group, Resource: anything})}, nil
	}
	update := Access{Verb: "update", Group: kind.Group, Resource: resource.Name, Namespace: writtenIn(namespace, &resource), Name: name}
	questions := []Question{needs(path, update)}
	if kind.Group != rbacv1.GroupName {
		return questions, nil
	}
	switch kind.Kind {
	case "Role", "ClusterRole":
		update.Verb = "escalate"
		return append(questions, needs(path, update)), nil
	case "RoleBinding":
		return append(questions, binding(path, "clusterroles", namespace), binding(path, "roles", namespace)), nil
	case "ClusterRoleBinding":
		return append(questions, binding(path, "clusterroles", "")), nil
	}
	return questions, nil
}

// binding is the permission to bind any role: an override can put any of them into a binding.
func binding(path *field.Path, resource, namespace string) Question {
	return needs(path, Access{Verb: "bind", Group: rbacv1.GroupName, Resource: resource, Namespace: namespace})
}

// overridingContents is the permission to change everything in a namespace, now and later.
func overridingContents(path *field.Path, namespace string) []Question {
	return []Question{
		needs(path, Access{Verb: "update", Group: anything, Resource: anything, Namespace: namespace}),
		needs(path, Access{Verb: "escalate", Group: rbacv1.GroupName, Resource: "roles", Namespace: namespace}),
		binding(path, "clusterroles", namespace),
		binding(path, "roles", namespace),
	}
}

// Refused returns an error for each question that is not allowed, in their order. what is the kind
// of the object that raises them, with its article.
func (a *Checker) Refused(ctx context.Context, what string, questions []Question) (field.ErrorList, error) {
	may, err := a.May(ctx, questions...)
	if err != nil {
		return nil, err
	}
	var refused []Question
	for i, question := range questions {
		if !may[i] {
			refused = append(refused, question)
		}
	}
	var all field.ErrorList
	for _, question := range merged(refused) {
		all = append(all, field.Forbidden(question.Path, fmt.Sprintf("user %q cannot %s on the hub, and %s does not bypass that", a.user.Username, question, what)))
	}
	return all, nil
}

// merged combines adjacent questions about one object, so that a refusal lists its verbs once.
func merged(questions []Question) []Question {
	var all []Question
	for _, question := range questions {
		if len(all) > 0 && all[len(all)-1].sameObject(question) {
			last := &all[len(all)-1]
			last.Any = append(slices.Clone(last.Any), question.Any...)
			continue
		}
		all = append(all, question)
	}
	return all
}
