// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const pullSecrets = "imagePullSecrets"

// withPullSecrets returns the item of a ServiceAccount with the pull secrets that others added on the
// member. The list has no merge key, so a merge would remove them. OpenShift then creates another Secret
// for the account, and adds it again.
func (e *Engine) withPullSecrets(it Item, live *unstructured.Unstructured) Item {
	if live == nil || it.object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "ServiceAccount"}) {
		return it
	}
	if merges := it.Mode.Method == Merge && e.merges(it, live) || it.Mode.Method == Compare && !it.Mode.Whole; !merges {
		return it
	}
	before := map[string]any{}
	_ = utiljson.Unmarshal(e.lastApplied(it, live), &before) // Without a last manifest, all others are of others.
	wanted, is := asList(it.object.Object[pullSecrets]), asList(live.Object[pullSecrets])
	ours := append(slices.Clone(wanted), asList(before[pullSecrets])...)
	others := slices.ContainsFunc(is, func(secret any) bool { return !contains(ours, secret) })
	if len(ours) == 0 || !others {
		return it
	}
	kept := slices.DeleteFunc(slices.Clone(is), func(secret any) bool { return contains(ours, secret) && !contains(wanted, secret) })
	for _, secret := range wanted {
		if !contains(kept, secret) {
			kept = append(kept, secret)
		}
	}
	it.object = it.object.DeepCopy()
	it.object.Object[pullSecrets] = kept
	return it
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func contains(list []any, value any) bool {
	return slices.ContainsFunc(list, func(item any) bool { return apiequality.Semantic.DeepEqual(item, value) })
}
