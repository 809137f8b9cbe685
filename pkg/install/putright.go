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
// (Deny and Warn exclude each other). Webhook configurations are left to apply: platforms
// add selectors of their own to them, and would do so again.
func (i *Installer) putRight(ctx context.Context, current, desired *unstructured.Unstructured) error {
	by := writersOfSpec(current)
	if !isPolicy(current) || len(by) == 0 {
		return nil
	}
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

// writersOfSpec are the field managers beside us that hold a field of the spec.
func writersOfSpec(current *unstructured.Unstructured) []string {
	var managers []string
	for _, entry := range current.GetManagedFields() {
		var fields map[string]json.RawMessage
		if entry.Manager == string(FieldOwner) || entry.Subresource != "" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
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
