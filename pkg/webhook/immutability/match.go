// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// excludedResources are groups, and resources of groups, that no policy may match: the hub and the
// gateway itself must be able to restart without the gateway.
func excludedResources() map[string][]string {
	return map[string][]string{
		"admissionregistration.k8s.io":  nil,
		"apiregistration.k8s.io":        nil,
		"apiextensions.k8s.io":          nil,
		"authentication.k8s.io":         nil,
		"authorization.k8s.io":          nil,
		"coordination.k8s.io":           nil,
		"events.k8s.io":                 nil,
		admissionv1alpha1.GroupName:     nil,
		"rbac.authorization.k8s.io":     nil,
		"flowcontrol.apiserver.k8s.io":  nil,
		"":                              {"bindings", "componentstatuses", "endpoints", "events", "namespaces", "nodes", "pods", "secrets", "serviceaccounts"},
		"discovery.k8s.io":              nil,
		"certificates.k8s.io":           nil,
		"cluster.kubernetes-fleet.io":   nil,
		"placement.kubernetes-fleet.io": nil,
	}
}

// validateMatch refuses matches that would put the hub itself at risk.
func validateMatch(match *admissionv1alpha1.PolicyMatch) field.ErrorList {
	var problems field.ErrorList
	forbidden := excludedResources()
	for i, r := range match.ResourceRules {
		at := field.NewPath("spec", "match", "resourceRules").Index(i)
		for j, group := range r.APIGroups {
			resources, listed := forbidden[group]
			switch {
			case strings.Contains(group, "*"):
				problems = append(problems, field.Invalid(at.Child("apiGroups").Index(j), group, "groups are named one by one"))
			case listed && resources == nil:
				problems = append(problems, field.Forbidden(at.Child("apiGroups").Index(j), "no policy stands in front of group "+group))
			}
			for k, resource := range r.Resources {
				plural, _, _ := strings.Cut(resource, "/")
				if slices.Contains(resources, plural) {
					problems = append(problems, field.Forbidden(at.Child("resources").Index(k), "no policy stands in front of "+plural))
				}
			}
		}
		for j, resource := range r.Resources {
			if strings.Contains(resource, "*") {
				problems = append(problems, field.Invalid(at.Child("resources").Index(j), resource, "resources are named one by one"))
			}
		}
		for j, operation := range r.Operations {
			switch operation {
			case admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete:
			default:
				problems = append(problems, field.NotSupported(at.Child("operations").Index(j), operation,
					[]admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}))
			}
		}
	}
	return problems
}
