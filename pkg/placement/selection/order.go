// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ranks is the order of kinds in a snapshot; other kinds follow by name. Clients compare the order of
// status.selectedResources with it.
var ranks = rank(
	"PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget",
	"ServiceAccount", "Secret", "ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim",
	"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service",
	"DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment", "HorizontalPodAutoscaler",
	"StatefulSet", "Job", "CronJob", "IngressClass", "Ingress", "APIService",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
)

func rank(kinds ...string) map[string]int {
	order := make(map[string]int, len(kinds))
	for i, kind := range kinds {
		order[kind] = i
	}
	return order
}

// Sort sorts objects into the only order in which they are hashed, stored and shown.
func Sort(objects []*unstructured.Unstructured) { slices.SortFunc(objects, compare) }

func compare(a, b *unstructured.Unstructured) int {
	return cmp.Or(
		cmp.Compare(rankOf(a), rankOf(b)),
		strings.Compare(a.GroupVersionKind().String(), b.GroupVersionKind().String()),
		strings.Compare(a.GetNamespace(), b.GetNamespace()),
		strings.Compare(a.GetName(), b.GetName()),
	)
}

func rankOf(object *unstructured.Unstructured) int {
	if rank, ok := ranks[object.GetKind()]; ok {
		return rank
	}
	return len(ranks)
}
