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

// putRight takes out of a policy of ours, or its binding, what somebody else has written
// into its spec. A server-side apply leaves what it does not name: a condition that
// exempts a friend, or an action beside ours, with which the API server refuses the whole
// (Deny and Warn exclude each other). The content decides and not who wrote it, since anybody may write in the
// name of our field manager. Webhook configurations are left to apply: platforms
// add selectors of their own to them, and would do so again.
func (i *Installer) putRight(ctx context.Context, current, desired *unstructured.Unstructured) error {
	if !isPolicy(current) || !saysMore(current, desired) {
		return nil
	}
	by := writersOfSpec(current)
	patch, err := specPatch(current, desired)
	if err != nil {
		return fmt.Errorf("comparing %s %s: %w", kindOf(current), current.GetName(), err)
	}
	before := current.GetResourceVersion()
	if err := i.Client.Patch(ctx, current, client.RawPatch(types.MergePatchType, patch), FieldOwner); err != nil {
		return fmt.Errorf("putting %s %s right, which %s changed: %w", kindOf(current), current.GetName(), strings.Join(by, ", "), err)
	}
	if current.GetResourceVersion() != before {
		log.FromContext(ctx).Info("Put a policy of ours right that somebody had changed: configure the gateway instead", "kind", kindOf(current), "name", current.GetName(), "managers", by)
	}
	return nil
}

func isPolicy(current client.Object) bool {
	kind := kindOf(current)
	return kind == "ValidatingAdmissionPolicy" || kind == "ValidatingAdmissionPolicyBinding"
}

// saysMore reports whether the spec of a policy has something that is not desired, apart from what
// the API server fills in. What it fills in beyond that costs a patch that changes nothing.
func saysMore(current, desired *unstructured.Unstructured) bool {
	return !hasAll(desired.Object["spec"], withoutDefaults(current.Object["spec"], desired.Object["spec"]))
}

// withoutDefaults is the value of current without the fields that are not desired and have the
// value that the API server gives them.
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

// writersOfSpec are the field managers that hold a field of the spec, but for what we have
// applied.
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

// specPatch is the merge patch that leaves of the spec what is desired. What it takes
// away of the API server's own defaults comes back by itself. It holds for the object
// that was looked at.
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
