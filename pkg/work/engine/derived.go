// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// API servers derive some fields from others that a manifest sets, and keep them when the others change:
// serviceAccount from serviceAccountName, imagePullPolicy from the tag of the image, and the types of a
// NetworkPolicy from its rules. A merge would keep
// them too, so that members which got the earlier manifest differ from those which get this one first.
// A derived field therefore counts as set by the manifest from which it was derived.

// trio is the same part of the last manifest, of the manifest, and of the object.
type trio struct{ before, wanted, live map[string]any }

// below returns the part in a field. If the last manifest lacks it, before is a new map.
func (t trio) below(path ...string) trio {
	for _, field := range path {
		before, _ := t.before[field].(map[string]any)
		if before == nil {
			before = map[string]any{}
		}
		wanted, _ := t.wanted[field].(map[string]any)
		live, _ := t.live[field].(map[string]any)
		t = trio{before, wanted, live}
	}
	return t
}

// withDerived returns the last manifest with the fields that the API server derived from fields which
// the manifest changes.
func withDerived(base []byte, wanted, live *unstructured.Unstructured) []byte {
	before := map[string]any{}
	kind := wanted.GroupVersionKind().GroupKind()
	path := podSpecOf(kind)
	if len(base) == 0 || path == nil && kind != service && kind != networkPolicy || utiljson.Unmarshal(base, &before) != nil {
		return base
	}
	t, derived := trio{before, wanted.Object, live.Object}, false
	switch kind {
	case service:
		derived = t.below("spec").affinity()
	case networkPolicy:
		derived = t.below("spec").policyTypes()
	default:
		derived = t.below(path...).podSpec()
	}
	text, err := json.Marshal(before)
	if !derived || err != nil {
		return base
	}
	return text
}

var (
	service               = schema.GroupKind{Kind: "Service"}
	claim                 = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	replicationController = schema.GroupKind{Kind: "ReplicationController"}
	networkPolicy         = schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}
)

// deriveAgain has a server-side apply set a field that the API server derived from fields which the manifest
// changes. Nobody owns such a field, so the apply cannot remove it.
func (e *Engine) deriveAgain(it Item, desired, live *unstructured.Unstructured) {
	if live == nil {
		return
	}
	if desired.GroupVersionKind().GroupKind() != networkPolicy {
		e.clearAlias(it, desired, live)
		return
	}
	before := ownedFields(live, e.managerOf(it))
	if before["spec"] == nil {
		return
	}
	t := trio{before, desired.Object, live.Object}.below("spec")
	if t.wanted != nil && t.policyTypes() {
		t.wanted[policyTypes] = policyTypesOf(t.wanted)
	}
}

// clearAlias has a server-side apply empty the alias of a service account that left the manifest: the API
// server would set the account again from the alias, which nobody owns.
func (e *Engine) clearAlias(it Item, desired, live *unstructured.Unstructured) {
	path := podSpecOf(desired.GroupVersionKind().GroupKind())
	if path == nil {
		return
	}
	const name, alias = "serviceAccountName", "serviceAccount"
	t := trio{nil, desired.Object, live.Object}.below(path...)
	if t.wanted == nil || t.wanted[name] != nil || t.wanted[alias] != nil || t.live[alias] == nil {
		return
	}
	before := trio{before: ownedFields(live, e.managerOf(it))}.below(path...).before
	if before[name] != nil {
		t.wanted[alias] = ""
	}
}

// podSpecOf returns the path of the template's Pod in objects of a kind whose template can change.
func podSpecOf(kind schema.GroupKind) []string {
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"}, schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"}, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"},
		schema.GroupKind{Kind: "ReplicationController"}:
		return []string{"spec", "template", "spec"}
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case schema.GroupKind{Kind: "PodTemplate"}:
		return []string{"template", "spec"}
	}
	return nil
}

// affinity covers the timeout of a Service with session affinity.
func (t trio) affinity() bool {
	const of, config, client = "sessionAffinity", "sessionAffinityConfig", string(corev1.ServiceAffinityClientIP)
	if t.before[of] != client || t.wanted[of] == client {
		return false
	}
	return t.take(config, t.live[config])
}

const policyTypes = "policyTypes"

// policyTypes covers the types of a NetworkPolicy, which say whether it restricts egress.
func (t trio) policyTypes() bool {
	types := policyTypesOf(t.before)
	return !apiequality.Semantic.DeepEqual(types, policyTypesOf(t.wanted)) && t.take(policyTypes, types)
}

// policyTypesOf returns the default types of a NetworkPolicy.
func policyTypesOf(spec map[string]any) any {
	types := []any{string(networkingv1.PolicyTypeIngress)}
	if egress, _ := spec["egress"].([]any); len(egress) > 0 {
		types = append(types, string(networkingv1.PolicyTypeEgress))
	}
	return types
}

// take adds a derived field to the last manifest, unless a manifest sets it or the object has another
// value.
func (t trio) take(field string, derived any) bool {
	if derived == nil || t.before[field] != nil || t.wanted[field] != nil || !apiequality.Semantic.DeepEqual(t.live[field], derived) {
		return false
	}
	t.before[field] = runtime.DeepCopyJSONValue(derived)
	return true
}

func (t trio) podSpec() bool {
	derived := false
	for of, alias := range map[string]string{"serviceAccountName": "serviceAccount", "serviceAccount": "serviceAccountName"} {
		if before := t.before[of]; before != nil && !apiequality.Semantic.DeepEqual(before, t.wanted[of]) {
			derived = t.take(alias, before) || derived
		}
	}
	for _, list := range []string{"initContainers", "containers"} {
		for _, before := range items(t.before[list]) {
			container := trio{before, itemWith(t.wanted[list], "name", before), itemWith(t.live[list], "name", before)}
			derived = container.wanted != nil && container.pullPolicy() || derived
		}
	}
	return derived
}

func (t trio) pullPolicy() bool {
	policy := pullPolicyOf(t.before["image"])
	return policy != pullPolicyOf(t.wanted["image"]) && t.take("imagePullPolicy", policy)
}

// pullPolicyOf returns the default policy for an image.
func pullPolicyOf(image any) string {
	text, _ := image.(string)
	name, _, digest := strings.Cut(text[strings.LastIndex(text, "/")+1:], "@")
	if _, tag, tagged := strings.Cut(name, ":"); tagged && tag != "latest" || !tagged && digest {
		return string(corev1.PullIfNotPresent)
	}
	return string(corev1.PullAlways)
}

// itemWith returns the item of a list that has the same value in a field as another one.
func itemWith(list any, field string, like map[string]any) map[string]any {
	for _, item := range items(list) {
		if apiequality.Semantic.DeepEqual(item[field], like[field]) {
			return item
		}
	}
	return nil
}
