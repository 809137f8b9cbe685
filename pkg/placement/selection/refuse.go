// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusedGroups are API groups none of whose kinds is ever sent to a member:
// what describes the fleet itself, and what a cluster says about itself.
var refusedGroups = map[string]bool{
	"cluster.kubernetes-fleet.io":               true,
	"placement.kubernetes-fleet.io":             true,
	"fleet.cattle.io":                           true,
	"authentication.open-cluster-management.io": true,
	"cluster.core.oam.dev":                      true,
	"tunnel.fleetgate.io":                       true,
	"request.fleetgate.io":                      true,
	"admission.fleetgate.io":                    true,
	"events.k8s.io":                             true,
	"coordination.k8s.io":                       true,
	"metrics.k8s.io":                            true,
}

// refusedKinds are single kinds with the same fate.
var refusedKinds = map[schema.GroupKind]bool{
	{Kind: "Pod"}:   true,
	{Kind: "Node"}:  true,
	{Kind: "Event"}: true,
	{Group: "multicluster.x-k8s.io", Kind: "ClusterProfile"}:             true,
	{Group: "networking.fleet.azure.com", Kind: "ServiceImport"}:         true,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerProfile"}: true,
	{Group: "networking.fleet.azure.com", Kind: "TrafficManagerBackend"}: true,
}

// envelopes are the kinds of a refused group that may be selected all the same:
// what is in them is sent.
var envelopes = map[schema.GroupKind]bool{
	{Group: "placement.kubernetes-fleet.io", Kind: "ClusterResourceEnvelope"}: true,
	{Group: "placement.kubernetes-fleet.io", Kind: "ResourceEnvelope"}:        true,
}

// KindPropagates reports whether objects of the kind may be sent to members at
// all.
func KindPropagates(kind schema.GroupKind) bool {
	return envelopes[kind] || !refusedGroups[kind.Group] && !refusedKinds[kind]
}

// NamespacePropagates reports whether a namespace may be sent: those of
// Kubernetes and of the fleet itself, and "default", may not.
func NamespacePropagates(name string) bool {
	return name != metav1.NamespaceDefault &&
		!strings.HasPrefix(name, "kube-") && !strings.HasPrefix(name, "fleet-")
}

// metadataPropagates reports whether an object inside a namespace may be sent,
// as far as its metadata tells. What a controller of the hub, or the API server,
// makes for itself stays: a member has controllers of its own. hasService says
// whether the namespace has a Service of that name.
func metadataPropagates(kind schema.GroupKind, object *metav1.PartialObjectMetadata, hasService func(name string) bool) bool {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Group: "apps", Kind: "ControllerRevision"}:
		return len(object.OwnerReferences) == 0
	case schema.GroupKind{Kind: "ConfigMap"}:
		return object.Name != "kube-root-ca.crt"
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return object.Name != "default"
	case schema.GroupKind{Kind: "Secret"}:
		return object.Annotations[corev1.ServiceAccountNameKey] == ""
	case schema.GroupKind{Kind: "Endpoints"}:
		return !hasService(object.Name)
	case schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:
		_, managed := object.Labels["endpointslice.kubernetes.io/managed-by"]
		return !managed
	}
	return true
}

// contentPropagates is the rest of the question, which only the full object
// answers.
func contentPropagates(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return true
	}
	secretType, _, _ := unstructured.NestedString(object.Object, "type")
	return secretType != string(corev1.SecretTypeServiceAccountToken)
}
