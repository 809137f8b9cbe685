// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Waves lists resources in the order of writing: all objects of a wave are written before any of the
// next one. Removal uses the reverse order. Unlisted resources form a last wave.
type Waves [][]schema.GroupResource

// Of returns the wave of a resource.
func (w Waves) Of(resource schema.GroupResource) int {
	for wave, resources := range w {
		if slices.Contains(resources, resource) {
			return wave
		}
	}
	return len(w)
}

// DependencyWaves are in the order of dependencies: namespaces before their contents, configuration
// before the Pods that mount it, webhook configurations after the Pods that serve them. No other
// object depends on the last wave, custom resources and unlisted API groups.
func DependencyWaves() Waves {
	return Waves{
		{
			{Resource: "namespaces"},
			{Group: "scheduling.k8s.io", Resource: "priorityclasses"},
		},
		{
			{Group: "networking.k8s.io", Resource: "networkpolicies"},
			{Group: "networking.k8s.io", Resource: "ingressclasses"},
			{Resource: "resourcequotas"},
			{Resource: "limitranges"},
			{Group: "policy", Resource: "podsecuritypolicies"},
			{Group: "policy", Resource: "poddisruptionbudgets"},
			{Resource: "serviceaccounts"},
			{Resource: "secrets"},
			{Resource: "configmaps"},
			{Group: "storage.k8s.io", Resource: "storageclasses"},
			{Resource: "persistentvolumes"},
			{Resource: "persistentvolumeclaims"},
			{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		},
		{
			{Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
			{Group: "rbac.authorization.k8s.io", Resource: "roles"},
		},
		{
			{Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
			{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
		},
		{
			{Resource: "services"},
			{Group: "apps", Resource: "daemonsets"},
			{Resource: "pods"},
			{Resource: "replicationcontrollers"},
			{Group: "apps", Resource: "replicasets"},
			{Group: "apps", Resource: "deployments"},
			{Group: "autoscaling", Resource: "horizontalpodautoscalers"},
			{Group: "apps", Resource: "statefulsets"},
			{Group: "batch", Resource: "jobs"},
			{Group: "batch", Resource: "cronjobs"},
			{Group: "networking.k8s.io", Resource: "ingresses"},
		},
		{
			{Group: "apiregistration.k8s.io", Resource: "apiservices"},
			{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"},
			{Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations"},
		},
	}
}
