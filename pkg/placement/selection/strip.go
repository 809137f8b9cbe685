// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serverMetadata are the fields of an object's metadata that a server made.
var serverMetadata = []string{
	"resourceVersion", "uid", "generation", "creationTimestamp", "selfLink",
	"managedFields", "ownerReferences", "deletionTimestamp", "deletionGracePeriodSeconds",
}

// serverAnnotations are annotations that mean nothing on another cluster.
var serverAnnotations = []string{
	corev1.LastAppliedConfigAnnotation,
	"deployment.kubernetes.io/revision",
}

// Strip cuts off what the hub's servers and controllers made, so that what is
// left is what the user wrote, and equal objects give equal manifests. It
// changes the object in place. Labels, other annotations and finalizers stay.
func Strip(object *unstructured.Unstructured) {
	for _, field := range serverMetadata {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	for _, annotation := range serverAnnotations {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", annotation)
	}
	if annotations, ok, _ := unstructured.NestedMap(object.Object, "metadata", "annotations"); ok && len(annotations) == 0 {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	}
	unstructured.RemoveNestedField(object.Object, "status")
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		stripService(object.Object)
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		stripJob(object.Object)
	}
}

// stripService removes what the hub allocated. A headless Service keeps its
// "None": that is the user's word.
func stripService(service map[string]any) {
	if ip, _, _ := unstructured.NestedString(service, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(service, "spec", "clusterIP")
		unstructured.RemoveNestedField(service, "spec", "clusterIPs")
	}
	unstructured.RemoveNestedField(service, "spec", "healthCheckNodePort")
	ports, ok, _ := unstructured.NestedSlice(service, "spec", "ports")
	if !ok {
		return
	}
	for _, port := range ports {
		if fields, ok := port.(map[string]any); ok {
			delete(fields, "nodePort")
		}
	}
	// The slice is a copy of what was there, so it goes back without an error.
	_ = unstructured.SetNestedSlice(service, ports, "spec", "ports")
}

// stripJob removes the selector that the hub generated, and the labels that it
// matches; with manualSelector they are the user's.
func stripJob(job map[string]any) {
	if manual, _, _ := unstructured.NestedBool(job, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job, "spec", "selector")
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		unstructured.RemoveNestedField(job, "spec", "template", "metadata", "labels", label)
	}
	unstructured.RemoveNestedField(job, "spec", "template", "metadata", "creationTimestamp")
}
