// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// leaveNothing is the annotation value with which the member decides no field.
const leaveNothing = "None"

// adoptMemberFields returns the item with the member's values in the fields that the member decides:
// fields that the author names, replicas that an autoscaler scaled, certificates that an injector
// filled in, and aggregated rules. Such fields are written at creation only. A merge, a replacement
// and a comparison then find no difference in them. A server-side apply omits the field if another
// manager owns it. A field that only we own would be removed or reset to its default by omission,
// so it is applied with its present value.
func (e *Engine) adoptMemberFields(it Item, live *unstructured.Unstructured) Item {
	if live == nil && isAggregated(it.object) {
		it.object = it.object.DeepCopy()
		delete(it.object.Object, "rules")
	}
	it = e.withPullSecrets(it, live)
	fields := e.memberFields(it, live)
	if len(fields) == 0 {
		return it
	}
	serverSide := !e.merges(it, live) && it.Mode.Method != Replace
	it.left, it.leaves = fields, nil
	for _, f := range fields {
		if _, wanted := f.in(it.object.Object); wanted {
			it.leaves = append(it.leaves, f.pointer)
		}
	}
	it.object = it.object.DeepCopy()
	it.pinned = e.adopt(it, it.object.Object, live, serverSide)
	if it.Mode.Leave != nil {
		leaving := *it.Mode.Leave
		leaving.Lean = leaving.Lean.DeepCopy()
		e.adopt(it, leaving.Lean.Object, live, serverSide)
		it.Mode.Leave = &leaving
	}
	return it
}

// adopt copies the values of live into the fields of a document that the member decides. It reports
// whether a server-side apply contains such a value: that apply must not overwrite a later one.
func (e *Engine) adopt(it Item, document map[string]any, live *unstructured.Unstructured, serverSide bool) (pinned bool) {
	for _, f := range it.left {
		value, there := f.in(live.Object)
		if !there || serverSide && !e.holdsAlone(it, f, live) {
			f.remove(document)
			continue
		}
		f.put(document, value)
		pinned = pinned || serverSide
	}
	return pinned
}

// holdsAlone reports whether no other manager owns the field. Such a field would be removed if we
// omitted it.
func (e *Engine) holdsAlone(it Item, f fieldPath, live *unstructured.Unstructured) bool {
	us, entries := e.managerOf(it), e.withoutDefaults(it, live).GetManagedFields()
	ours := false
	for i := range entries {
		if f.isIn(&entries[i]) {
			if entries[i].Manager != us {
				return false
			}
			ours = true
		}
	}
	return ours
}

// memberFields returns the fields of a manifest that the member decides.
func (e *Engine) memberFields(it Item, live *unstructured.Unstructured) []fieldPath {
	if live == nil {
		return nil
	}
	var fields []fieldPath
	if isAggregated(it.object) {
		fields = fieldsAt(it.object.Object, []string{"rules"})
	}
	text := it.object.GetAnnotations()[e.LeaveAnnotation]
	if e.LeaveAnnotation != "" && text == leaveNothing {
		return fields
	}
	if e.LeaveAnnotation != "" && text != "" {
		pointers, err := parsePointers(text)
		if err != nil {
			return fields // the plan has refused it
		}
		for _, segments := range pointers {
			fields = append(fields, fieldsAt(it.object.Object, segments)...)
		}
	}
	fields = append(fields, e.ignoredFields(it, live)...)
	for _, segments := range scaledFields(live, e.managerOf(it)) {
		fields = append(fields, fieldsAt(it.object.Object, segments)...)
	}
	if segments := keptIfUnset(it.object); segments != nil {
		_, found, _ := unstructured.NestedFieldNoCopy(it.object.Object, segments...)
		if !found && (segments[1] == "replicas" || !e.wasSet(it, live, segments)) {
			fields = append(fields, fieldsAt(it.object.Object, segments)...)
		}
	}
	fields = append(fields, grownRequest(it.object, live)...)
	fields = append(fields, queuedFields(it.object, live)...)
	return append(fields, e.injectedFields(it, live)...)
}

// ignoredFields returns the fields that the Mode of an item leaves to the member. A pointer that cannot be
// parsed names none: the API server validates them.
func (e *Engine) ignoredFields(it Item, live *unstructured.Unstructured) []fieldPath {
	var fields []fieldPath
	for _, ignored := range it.Mode.Ignore {
		if ignored.UntilChanged && live.GetAnnotations()[e.HashAnnotation] != it.hash {
			continue
		}
		for _, pointer := range ignored.Pointers {
			segments, err := parsePointer(pointer)
			if err == nil {
				fields = append(fields, fieldsAt(it.object.Object, segments)...)
			}
		}
	}
	return fields
}

// scaledFields returns the fields that an autoscaler wrote by the scale subresource, spec.replicas
// for built-in workloads. A write by kubectl is a manual change and does not count.
func scaledFields(live *unstructured.Unstructured, us string) [][]string {
	var all [][]string
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource == "scale" && entry.Manager != us && !strings.HasPrefix(entry.Manager, "kubectl") {
			all = append(all, leavesOf(fieldsIn(&entry), nil)...)
		}
	}
	return all
}

// keptIfUnset returns the field that keeps the member's value if the manifest does not set it; nil if there
// is none. Without replicas, a workload falls back to one. A cluster sets its default class only when it
// creates an Ingress or a Service; one that the last manifest set is removed.
func keptIfUnset(object *unstructured.Unstructured) []string {
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, schema.GroupKind{Kind: "ReplicationController"}:
		return []string{"spec", "replicas"}
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}:
		return []string{"spec", "ingressClassName"}
	case schema.GroupKind{Kind: "Service"}:
		if kind, _, _ := unstructured.NestedString(object.Object, "spec", "type"); kind == string(corev1.ServiceTypeLoadBalancer) {
			return []string{"spec", "loadBalancerClass"}
		}
	}
	return nil
}

// wasSet reports whether the last manifest set a field.
func (e *Engine) wasSet(it Item, live *unstructured.Unstructured, segments []string) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(e.lastManifest(it, live), segments...)
	return found
}

// lastManifest returns the fields that the last manifest set; none if they cannot be read.
func (e *Engine) lastManifest(it Item, live *unstructured.Unstructured) map[string]any {
	before := map[string]any{}
	if utiljson.Unmarshal(e.lastApplied(it, live), &before) != nil {
		return nil
	}
	return before
}

// grownRequest returns the size of a claim that is larger on the member, for example since an autoresizer
// has expanded it. A claim cannot shrink.
func grownRequest(wanted, live *unstructured.Unstructured) []fieldPath {
	if wanted.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "PersistentVolumeClaim"}) {
		return nil
	}
	var sizes [2]resource.Quantity
	segments := []string{"spec", "resources", "requests", "storage"}
	for place, claim := range []*unstructured.Unstructured{wanted, live} {
		text, _, _ := unstructured.NestedString(claim.Object, segments...)
		size, err := untrusted.Quantity(text)
		if err != nil {
			return nil // The API server refuses it.
		}
		sizes[place] = size
	}
	if sizes[1].Cmp(sizes[0]) <= 0 {
		return nil
	}
	return fieldsAt(wanted.Object, segments)
}

// Kueue starts a job of one of its queues, and stops it again if another job needs its quota.
const (
	queueLabel   = "kueue.x-k8s.io/queue-name"
	queueManager = "kueue"
)

// queuedFields returns the field by which Kueue starts and stops a job, if the manifest sets it. API servers
// set the default of Jobs, so that manifests of the hub have it.
func queuedFields(wanted, live *unstructured.Unstructured) []fieldPath {
	var fields []fieldPath
	for _, segments := range [][]string{{"spec", "suspend"}, {"spec", "runPolicy", "suspend"}} {
		if _, set, _ := unstructured.NestedFieldNoCopy(wanted.Object, segments...); !set {
			continue
		}
		_, queued := wanted.GetLabels()[queueLabel]
		if queued || holderOf(live.GetManagedFields(), "/"+strings.Join(segments, "/"), "") == queueManager {
			fields = append(fields, fieldsAt(wanted.Object, segments)...)
		}
	}
	return fields
}

// isAggregated reports whether the member's controller manager computes the rules of a role.
func isAggregated(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"} &&
		object.Object["aggregationRule"] != nil
}

// injectors are the annotations with which authors request an injected certificate authority.
var injectors = []string{"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle", "service.alpha.openshift.io/inject-cabundle"}

// injectedFields returns the certificate authorities that an injector of the member filled in. The
// manifest has none, a placeholder, or the annotation of an injector. One that the last manifest set is the
// author's. Some injectors also have the API server fail without a webhook once it is served: its failure policy
// is theirs too.
func (e *Engine) injectedFields(it Item, live *unstructured.Unstructured) []fieldPath {
	wanted, authority := it.object, authorityOf(it.object.GroupVersionKind().GroupKind())
	if authority == nil {
		return nil
	}
	requested, before := false, e.lastManifest(it, live)
	annotations := wanted.GetAnnotations()
	for _, annotation := range injectors {
		_, has := annotations[annotation]
		requested = requested || has
	}
	var filled []fieldPath
	for _, f := range fieldsAt(wanted.Object, authority) {
		is, _ := f.in(live.Object)
		desired, set := f.in(wanted.Object)
		was, _ := f.in(before)
		if isPlaceholder(is) || !requested && (!isPlaceholder(desired) || !set && was == is) {
			continue
		}
		filled = append(filled, f)
		if f.steps[0].key != "webhooks" {
			continue
		}
		webhook := fieldPath{steps: f.steps[:2], pointer: "/webhooks/" + strconv.Itoa(f.steps[1].place)}
		policy := webhook.below("failurePolicy", fieldStep{key: "failurePolicy"})
		if _, set := policy.in(wanted.Object); set && haveSameManager(f, policy, live.GetManagedFields(), e.managerOf(it)) {
			filled = append(filled, policy)
		}
	}
	return filled
}

// haveSameManager reports whether a manager that is no client of a person owns both fields.
func haveSameManager(a, b fieldPath, entries []metav1.ManagedFieldsEntry, us string) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != us && !isClient(entry.Manager) && a.isIn(&entry) && b.isIn(&entry)
	})
}

// authorityOf returns the path of the certificate authority in objects of a kind; nil if they have
// none.
func authorityOf(kind schema.GroupKind) []string {
	switch kind {
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return []string{"spec", "caBundle"}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:
		return []string{"webhooks", anyItem, "clientConfig", "caBundle"}
	}
	return nil
}

// isPlaceholder recognizes a missing certificate authority. Generators of manifests write a
// base64-encoded newline that an injector replaces.
func isPlaceholder(authority any) bool {
	text, is := authority.(string)
	if !is {
		return true
	}
	switch strings.TrimSpace(text) {
	case "", "Cg==", "Cgo=", "IA==":
		return true
	}
	return false
}

// assigned returns the fields that an API server or controller sets on objects of a kind if the
// manifest does not. They are no difference when all fields are compared.
func assigned(wanted *unstructured.Unstructured) [][]string {
	switch wanted.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Kind: "Service"}:
		return [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "ipFamilies"}, {"spec", "ipFamilyPolicy"},
			{"spec", "healthCheckNodePort"}, {"spec", "ports", anyItem, "nodePort"}}
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		return [][]string{{"spec", "volumeName"}}
	case schema.GroupKind{Kind: "PersistentVolume"}:
		return [][]string{{"spec", "claimRef"}}
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return [][]string{{"secrets"}, {"imagePullSecrets"}}
	case schema.GroupKind{Kind: "Namespace"}:
		return [][]string{{"spec"}}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		return [][]string{{"spec", "selector"}, {"spec", "template", "metadata", "labels", "controller-uid"},
			{"spec", "template", "metadata", "labels", "job-name"},
			{"spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"},
			{"spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"}}
	}
	return nil
}

// comparable returns the manifest in the form in which all of its fields are compared with an
// object.
func (e *Engine) comparable(it Item, object *unstructured.Unstructured) *unstructured.Unstructured {
	fields := e.memberFields(it, object)
	for _, segments := range assigned(it.object) {
		for _, f := range fieldsAt(it.object.Object, segments) {
			if _, found := f.in(it.object.Object); !found {
				fields = append(fields, f)
			}
		}
	}
	wanted := it.object.DeepCopy()
	for _, f := range fields {
		if value, there := f.in(object.Object); there {
			f.put(wanted.Object, value)
		}
	}
	addDefaults(wanted, object, e.managerOf(it))
	return wanted
}
