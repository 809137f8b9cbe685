// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Strip cuts off what the hub's servers and controllers made, so that what is
// left is what the author wrote, and equal objects give equal manifests. It
// changes the object in place. What the hub made is in the table of rules; managedFields
// tell whether the author chose a value that a server may also choose.
func Strip(object *unstructured.Unstructured) {
	kind := object.GroupVersionKind().GroupKind()
	var by writers
	if hasScale(object) || slices.ContainsFunc(rules, func(r rule) bool { return r.covers(kind) }) {
		by = writersOf(object) // Rules for all kinds ask for no more.
	}
	for _, rule := range rules {
		if len(rule.kinds) == 0 || rule.covers(kind) {
			rule.cut(object.Object, by)
		}
	}
}

// remove drops fields regardless of who set them.
func remove(paths ...[]string) func(map[string]any, writers) {
	return func(object map[string]any, _ writers) {
		for _, path := range paths {
			unstructured.RemoveNestedField(object, path...)
		}
	}
}

// removeAllocated cuts fields of the spec that are known not to be the author's.
func removeAllocated(fields ...string) func(map[string]any, writers) {
	return func(object map[string]any, by writers) {
		for _, field := range fields {
			if by.allocated("spec", field) {
				unstructured.RemoveNestedField(object, "spec", field)
			}
		}
	}
}

// removeKeys cuts entries of a map of the metadata. A name that ends with "/" stands for all keys
// that begin with it.
func removeKeys(field string, names ...string) func(map[string]any, writers) {
	return func(object map[string]any, _ writers) {
		entries, ok, _ := unstructured.NestedMap(object, "metadata", field)
		if !ok {
			return
		}
		for key := range entries {
			for _, name := range names {
				if key == name || strings.HasSuffix(name, "/") && strings.HasPrefix(key, name) {
					delete(entries, key)
				}
			}
		}
		if len(entries) == 0 {
			unstructured.RemoveNestedField(object, "metadata", field)
			return
		}
		// The map is a copy of the object's own, so setting it cannot fail.
		_ = unstructured.SetNestedMap(object, entries, "metadata", field)
	}
}

func annotation(object map[string]any, name string) string {
	value, _, _ := unstructured.NestedString(object, "metadata", "annotations", name)
	return value
}

func cutFinalizers(object map[string]any, _ writers) {
	if annotation(object, placementv1beta1.PlaceFinalizersAnnotation) != "true" {
		unstructured.RemoveNestedField(object, "metadata", "finalizers")
	}
}

// cutReplicas takes the number that kubectl noted as the author's in place of an autoscaler's. Without
// one the number is left to members.
func cutReplicas(object map[string]any, by writers) {
	if !by.autoscaled() {
		return
	}
	unstructured.RemoveNestedField(object, "spec", "replicas")
	var applied struct {
		Spec struct {
			Replicas *int64 `json:"replicas"`
		} `json:"spec"`
	}
	err := untrusted.UnmarshalJSON([]byte(annotation(object, corev1.LastAppliedConfigAnnotation)), untrusted.Object, &applied)
	if err == nil && applied.Spec.Replicas != nil {
		_ = unstructured.SetNestedField(object, *applied.Spec.Replicas, "spec", "replicas") // The spec is a map.
	}
}

// cutClusterIP leaves a headless Service its "None": that is the author's word.
func cutClusterIP(service map[string]any, _ writers) {
	if ip, _, _ := unstructured.NestedString(service, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(service, "spec", "clusterIP")
		unstructured.RemoveNestedField(service, "spec", "clusterIPs")
	}
}

// cutNodePorts leaves those that the author chose.
func cutNodePorts(service map[string]any, by writers) {
	if !by.authored("spec", "healthCheckNodePort") {
		unstructured.RemoveNestedField(service, "spec", "healthCheckNodePort")
	}
	ports, ok, _ := unstructured.NestedSlice(service, "spec", "ports")
	if !ok {
		return
	}
	for _, port := range ports {
		fields, ok := port.(map[string]any)
		if !ok {
			continue
		}
		protocol, ok := fields["protocol"].(string)
		if !ok {
			protocol = string(corev1.ProtocolTCP)
		}
		if !by.authored("spec", "ports", fieldpath.KeyByFields("port", fields["port"], "protocol", protocol), "nodePort") {
			delete(fields, "nodePort")
		}
	}
	// The slice is a copy of the object's own, so setting it cannot fail.
	_ = unstructured.SetNestedSlice(service, ports, "spec", "ports")
}

// cutJob removes the selector that the hub generated, and the labels that it
// matches; with manualSelector they are the author's.
func cutJob(job map[string]any, _ writers) {
	if manual, _, _ := unstructured.NestedBool(job, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(job, "spec", "selector")
	for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
		unstructured.RemoveNestedField(job, "spec", "template", "metadata", "labels", label)
	}
	unstructured.RemoveNestedField(job, "spec", "template", "metadata", "creationTimestamp")
}

// cutClaimRef leaves the claim's name if the author reserved the volume for it.
func cutClaimRef(volume map[string]any, by writers) {
	if annotation(volume, boundByController) != "" || by.allocated("spec", "claimRef") {
		unstructured.RemoveNestedField(volume, "spec", "claimRef")
		return
	}
	for _, field := range []string{"uid", "resourceVersion"} {
		unstructured.RemoveNestedField(volume, "spec", "claimRef", field)
	}
}

func cutVolumeName(claim map[string]any, by writers) {
	if annotation(claim, boundByController) != "" || by.allocated("spec", "volumeName") {
		unstructured.RemoveNestedField(claim, "spec", "volumeName")
	}
}

func cutAggregatedRules(role map[string]any, _ writers) {
	if role["aggregationRule"] != nil {
		delete(role, "rules")
	}
}

// cutTokenReferences leaves the references that the author wrote.
func cutTokenReferences(account map[string]any, by writers) {
	secrets, ok, _ := unstructured.NestedSlice(account, "secrets")
	if !ok || len(by) == 0 {
		return
	}
	kept := make([]any, 0, len(secrets))
	for _, secret := range secrets {
		if fields, ok := secret.(map[string]any); ok && by.authored("secrets", fieldpath.KeyByFields("name", fields["name"])) {
			kept = append(kept, secret)
		}
	}
	if len(kept) == 0 {
		delete(account, "secrets")
		return
	}
	account["secrets"] = kept
}

// covers reports whether the rule is for this kind in particular.
func (r rule) covers(kind schema.GroupKind) bool {
	return slices.Contains(r.kinds, kind)
}
