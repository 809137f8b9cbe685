// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Controllers of the member fill in fields of some kinds: token and pull secrets of
// ServiceAccounts, certificates of webhooks and API services. A manifest without these fields does
// not ask to remove them, and a controller would fill them in again.

// inherit copies the fields that controllers fill in from live, if the manifest does not set them.
func inherit(wanted, live *unstructured.Unstructured) {
	switch kind := wanted.GroupVersionKind().GroupKind(); kind {
	case schema.GroupKind{Kind: "ServiceAccount"}:
		takeOver(wanted.Object, live.Object, "secrets")
		takeOver(wanted.Object, live.Object, "imagePullSecrets")
		keepPlatformSecret(wanted, live)
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

// keepPlatformSecret keeps the pull secret that OpenShift created for a ServiceAccount, beside those of the
// manifest. OpenShift creates another one whenever it is removed.
func keepPlatformSecret(wanted, live *unstructured.Unstructured) {
	list, _ := wanted.Object[pullSecrets].([]any)
	for _, secret := range items(live.Object[pullSecrets]) {
		name, _ := secret["name"].(string)
		if len(list) > 0 && strings.HasPrefix(name, live.GetName()+"-dockercfg-") && !contains(list, any(secret)) {
			list = append(list, secret)
		}
	}
	if len(list) > 0 {
		wanted.Object[pullSecrets] = list
	}
}

// takeOver copies the value at a path from live to wanted, if wanted has the parents of the path
// and no value.
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
	_, isSet := wanted[path[last]]
	if value, there := live[path[last]]; there && !isSet {
		wanted[path[last]] = value
	}
}

// items returns the items of a list that are maps; none if the value is no list.
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
