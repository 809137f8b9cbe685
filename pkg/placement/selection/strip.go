// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Strip removes the values that the hub's servers and controllers set, in place. What remains is what
// the author wrote, and equal objects have equal manifests. The table of rules names those values.
// managedFields show whether the author chose a value that a server can also choose.
func Strip(object *unstructured.Unstructured) {
	kind, entries := object.GroupVersionKind().GroupKind(), object.GetManagedFields()
	var by writers
	if hasScale(entries) || slices.ContainsFunc(rules, func(r rule) bool { return r.covers(kind) }) {
		by = writersOf(entries) // Rules for all kinds need no managed fields.
	}
	for _, rule := range rules {
		if len(rule.kinds) == 0 || rule.covers(kind) {
			rule.cut(object.Object, by)
		}
	}
	for field, reporters := range map[string]bool{"annotations": true, "labels": false} {
		if keys := controllerKeys(entries, field, reporters); len(keys) > 0 {
			dropKeys(object.Object, field, keys.Has)
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

// removeAllocated drops fields of the spec that are known not to be the author's.
func removeAllocated(fields ...string) func(map[string]any, writers) {
	return func(object map[string]any, by writers) {
		for _, field := range fields {
			if by.allocated("spec", field) {
				unstructured.RemoveNestedField(object, "spec", field)
			}
		}
	}
}

// removeKeys drops entries of a map in the metadata. A name that ends with "/" is a prefix.
func removeKeys(field string, names ...string) func(map[string]any, writers) {
	return func(object map[string]any, _ writers) {
		dropKeys(object, field, func(key string) bool {
			return slices.ContainsFunc(names, func(name string) bool {
				return key == name || strings.HasSuffix(name, "/") && strings.HasPrefix(key, name)
			})
		})
	}
}

func dropKeys(object map[string]any, field string, drop func(key string) bool) {
	entries, ok, _ := unstructured.NestedMap(object, "metadata", field)
	if !ok {
		return
	}
	maps.DeleteFunc(entries, func(key string, _ any) bool { return drop(key) })
	if len(entries) == 0 {
		unstructured.RemoveNestedField(object, "metadata", field)
		return
	}
	// The map is a copy, so setting it cannot fail.
	_ = unstructured.SetNestedMap(object, entries, "metadata", field)
}

func annotation(object map[string]any, name string) string {
	value, _, _ := unstructured.NestedString(object, "metadata", "annotations", name)
	return value
}

func cutFinalizers(object map[string]any, _ writers) {
	if annotation(object, placementv1beta1.PlaceFinalizersAnnotation) == "true" {
		return
	}
	unstructured.RemoveNestedField(object, "metadata", "finalizers")
	// A Namespace has more in its spec. Every API server sets that of Kubernetes.
	if finalizers, ok, _ := unstructured.NestedSlice(object, "spec", "finalizers"); ok && object["apiVersion"] == "v1" && object["kind"] == "Namespace" {
		kept := slices.DeleteFunc(finalizers, func(finalizer any) bool { return finalizer != string(corev1.FinalizerKubernetes) })
		_ = unstructured.SetNestedSlice(object, kept, "spec", "finalizers") // The spec is a map.
	}
}

// cutReplicas replaces an autoscaler's number of replicas by the author's, which kubectl recorded.
// Without such a record, members decide the number.
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

// cutClusterIP keeps "None" of a headless Service, because the author wrote it.
func cutClusterIP(service map[string]any, _ writers) {
	if ip, _, _ := unstructured.NestedString(service, "spec", "clusterIP"); ip != corev1.ClusterIPNone {
		unstructured.RemoveNestedField(service, "spec", "clusterIP")
		unstructured.RemoveNestedField(service, "spec", "clusterIPs")
	}
}

// cutNodePorts keeps node ports that the author chose.
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
	// The slice is a copy, so setting it cannot fail.
	_ = unstructured.SetNestedSlice(service, ports, "spec", "ports")
}

// cutJob removes the generated selector and its labels. With manualSelector they are the author's.
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

// cutClaimRef keeps the claim's name if the author reserved the volume for it.
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

// cutAuthorities removes the certificate authorities that an injector wrote, for servers of the hub. An injector
// of a member writes its own; both would overwrite them in turn. If an annotation asks for it, the agent leaves
// the field to the injector, and a member without one needs what is in the object.
func cutAuthorities(object map[string]any, by writers) {
	annotations, _, _ := unstructured.NestedMap(object, "metadata", "annotations")
	for key := range annotations {
		if strings.Contains(key, "/inject-") {
			return
		}
	}
	webhooks, _, _ := unstructured.NestedSlice(object, "webhooks")
	for _, webhook := range webhooks {
		fields, _ := webhook.(map[string]any)
		if by.injected("webhooks", fieldpath.KeyByFields("name", fields["name"]), "clientConfig") {
			unstructured.RemoveNestedField(fields, "clientConfig", "caBundle")
		}
	}
	if len(webhooks) > 0 {
		object["webhooks"] = webhooks
	}
	if by.injected("spec") {
		unstructured.RemoveNestedField(object, "spec", "caBundle")
	}
	if by.injected("spec", "conversion", "webhook", "clientConfig") {
		unstructured.RemoveNestedField(object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	}
}

// cutGeneratedHost removes the host name that OpenShift generated in the domain of the hub.
func cutGeneratedHost(route map[string]any, _ writers) {
	const generated = "openshift.io/host.generated"
	if annotation(route, generated) == "true" {
		unstructured.RemoveNestedField(route, "spec", "host")
		dropKeys(route, "annotations", func(key string) bool { return key == generated })
	}
}

func cutAggregatedRules(role map[string]any, _ writers) {
	if role["aggregationRule"] != nil {
		delete(role, "rules")
	}
}

// cutTokenReferences keeps the references that the author wrote.
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

// cutPullSecrets drops the Secret that OpenShift creates for each account, by its name. The list has one
// owner as a whole: OpenShift owns the author's entries too, once it has added its own.
func cutPullSecrets(account map[string]any, by writers) {
	secrets, ok, _ := unstructured.NestedSlice(account, "imagePullSecrets")
	if !ok || !by.allocated("imagePullSecrets") {
		return
	}
	name, _, _ := unstructured.NestedString(account, "metadata", "name")
	kept := slices.DeleteFunc(secrets, func(secret any) bool {
		fields, _ := secret.(map[string]any)
		of, _ := fields["name"].(string)
		return strings.HasPrefix(of, name+"-dockercfg-")
	})
	if len(kept) == 0 {
		delete(account, "imagePullSecrets")
		return
	}
	account["imagePullSecrets"] = kept
}

// covers reports whether the rule names this kind.
func (r rule) covers(kind schema.GroupKind) bool {
	return slices.Contains(r.kinds, kind)
}
