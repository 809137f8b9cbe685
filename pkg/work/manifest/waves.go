// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "k8s.io/apimachinery/pkg/runtime/schema"

// LastWave is the wave of resources that no other object depends on: custom resources and unlisted
// API groups.
const LastWave = 6

// waves lists resources in the order of their dependencies: namespaces before their contents,
// configuration before the Pods that mount it, webhook configurations after the Pods that serve
// them.
var waves = [LastWave][]schema.GroupResource{
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

// Wave returns the position of a resource in the order of writing: all objects of a wave are
// written before any of the next one. Removal uses the reverse order.
func Wave(resource schema.GroupResource) int {
	for wave, resources := range waves {
		for _, r := range resources {
			if r == resource {
				return wave
			}
		}
	}
	return LastWave
}
