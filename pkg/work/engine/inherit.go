// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Controllers of a member fill something in on objects of some kinds: tokens and pull
// secrets on accounts, certificates on what an API server calls. A manifest that says
// nothing of it does not mean to take it away, and who did would only have them do it
// again.

// inherit takes over from live what controllers fill in, where the manifest is silent.
func inherit(wanted, live *unstructured.Unstructured) {
	switch kind := wanted.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Kind: "ServiceAccount"}:
		takeOver(wanted.Object, live.Object, "secrets")
		takeOver(wanted.Object, live.Object, "imagePullSecrets")
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		takeOver(wanted.Object, live.Object, "spec", "caBundle")
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		takeOver(wanted.Object, live.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:
		there := map[any]map[string]any{}
		for _, webhook := range items(live.Object["webhooks"]) {
			there[webhook["name"]] = webhook
		}
		for _, webhook := range items(wanted.Object["webhooks"]) {
			takeOver(webhook, there[webhook["name"]], "clientConfig", "caBundle")
		}
	}
}

// takeOver gives wanted the value at a path of live, if it has all that leads there and no
// value.
func takeOver(wanted, live map[string]any, path ...string) {
	last := len(path) - 1
	for _, key := range path[:last] {
		next, has := wanted[key].(map[string]any)
		if !has {
			return
		}
		wanted = next
		live, _ = live[key].(map[string]any)
	}
	_, said := wanted[path[last]]
	if value, there := live[path[last]]; there && !said {
		wanted[path[last]] = value
	}
}

// items are those of a list that are maps, none if it is no list.
func items(list any) []map[string]any {
	values, _ := list.([]any)
	var all []map[string]any
	for _, value := range values {
		if fields, ok := value.(map[string]any); ok {
			all = append(all, fields)
		}
	}
	return all
}
