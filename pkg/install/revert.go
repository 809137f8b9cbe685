// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// revert removes foreign content from the spec of our policies and bindings. A server-side apply
// keeps fields that it does not name: a condition that exempts somebody, or an action beside ours with
// which the API server rejects the whole (Deny and Warn exclude each other). The content decides and
// not its author, because anybody can use the name of our field manager. Webhook configurations are
// only applied: platforms add their own selectors to them, and would do so again.
func (i *Installer) revert(ctx context.Context, current, desired *unstructured.Unstructured) error {
	if !isPolicy(current) || !hasUndesired(current, desired) {
		return nil
	}
	by := writersOfSpec(current)
	patch, err := specPatch(current, desired)
	if err != nil {
		return fmt.Errorf("comparing %s %s: %w", kindOf(current), current.GetName(), err)
	}
	before := current.GetResourceVersion()
	if err := i.Client.Patch(ctx, current, client.RawPatch(types.MergePatchType, patch), FieldOwner); err != nil {
		return fmt.Errorf("reverting the change of %s %s by %s: %w", kindOf(current), current.GetName(), strings.Join(by, ", "), err)
	}
	if current.GetResourceVersion() != before {
		log.FromContext(ctx).Info("Reverted a change of the gateway's policy; configure the gateway instead", "kind", kindOf(current), "name", current.GetName(), "managers", by)
	}
	return nil
}

func isPolicy(current client.Object) bool {
	kind := kindOf(current)
	return kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding"
}

// hasUndesired reports whether the spec of a policy has undesired content, except for defaults. An unknown
// default costs a patch that changes nothing.
func hasUndesired(current, desired *unstructured.Unstructured) bool {
	return !hasAll(desired.Object["spec"], withoutDefaults(current.Object["spec"], desired.Object["spec"]))
}

// withoutDefaults returns current without undesired fields that have the API server's default value.
func withoutDefaults(current, desired any) any {
	switch current := current.(type) {
	case map[string]any:
		fields, _ := desired.(map[string]any)
		kept := make(map[string]any, len(current))
		for name, field := range current {
			wanted, given := fields[name]
			if !given && isDefault(name, field) {
				continue
			}
			kept[name] = withoutDefaults(field, wanted)
		}
		return kept
	case []any:
		items, _ := desired.([]any)
		kept := make([]any, len(current))
		for i, item := range current {
			var wanted any
			if i < len(items) {
				wanted = items[i]
			}
			kept[i] = withoutDefaults(item, wanted)
		}
		return kept
	default:
		return current
	}
}

func isDefault(field string, is any) bool {
	switch field {
	case "matchPolicy":
		return is == "Equivalent"
	case "scope":
		return is == "*"
	case "namespaceSelector", "objectSelector":
		selector, ok := is.(map[string]any)
		return ok && len(selector) == 0
	}
	return false
}

// writersOfSpec are the field managers of the spec, except for our applied fields.
func writersOfSpec(current *unstructured.Unstructured) []string {
	var managers []string
	for _, entry := range current.GetManagedFields() {
		var fields map[string]json.RawMessage
		if isOurs(entry) || entry.Subresource != "" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields["f:spec"]; ok {
			managers = append(managers, entry.Manager)
		}
	}
	slices.Sort(managers)
	return slices.Compact(managers)
}

// specPatch is the merge patch that reduces the spec to its desired content. The API server adds its
// defaults again. The patch is only valid for the object that was read.
func specPatch(current, desired *unstructured.Unstructured) ([]byte, error) {
	is, err := json.Marshal(map[string]any{"spec": current.Object["spec"]})
	if err != nil {
		return nil, err
	}
	wanted, err := json.Marshal(map[string]any{
		"spec": desired.Object["spec"], "metadata": map[string]any{"resourceVersion": current.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(is, wanted, is)
}
