// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package override

import (
	"encoding/json"
	"errors"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

const invalid = "the overrides result in an object that no API server accepts"

// Apply returns the member's manifests, in order, without those that a rule deletes. It does not change
// its input. An error tells the author of the override what does not fit. It is a refusal if every rule
// could be applied but the result is an object that no API server accepts; clients distinguish this
// from a rule that does not fit.
func (s Set) Apply(manifests []placementv1beta1.Manifest, member Member) ([]placementv1beta1.Manifest, error) {
	if len(s) == 0 {
		return manifests, nil
	}
	changed := make([]placementv1beta1.Manifest, 0, len(manifests))
	for i, m := range manifests {
		id, err := identify(m.Raw)
		if err != nil {
			return nil, fmt.Errorf("manifest %d: %w", i, err)
		}
		raw, err := s.applyTo(m.Raw, id, member)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", nameOf(id), err)
		}
		if raw == nil {
			continue
		}
		m.Raw = raw
		changed = append(changed, m)
	}
	return changed, nil
}

// applyTo returns nil for a manifest that a rule deletes.
func (s Set) applyTo(raw []byte, id placementv1beta1.ResourceIdentifier, member Member) ([]byte, error) {
	before := raw
	for _, o := range s {
		if !o.concerns(id) {
			continue
		}
		rules, err := o.rulesFor(member)
		if err != nil {
			return nil, err
		}
		for _, rule := range rules {
			if rule.OverrideType == placementv1beta1.DeleteOverrideType {
				return nil, nil
			}
			if raw, err = patch(raw, rule.JSONPatchOverrides, member); err != nil {
				return nil, fmt.Errorf("override snapshot %q: %w", o.Snapshot, err)
			}
		}
	}
	return raw, stillApplicable(before, raw, id)
}

// stillApplicable rejects changes that admission rejects too, but that an older override may contain.
// An override that changes the identity of an object would escape the rules by which the resource was
// selected.
func stillApplicable(before, after []byte, id placementv1beta1.ResourceIdentifier) error {
	if len(after) > manifest.MaxBytes && len(after) > len(before) {
		return refusal.New(placementv1beta1.ReasonSyncWorkFailed, invalid+": %d bytes long, the limit is %d", len(after), manifest.MaxBytes)
	}
	is, err := identify(after)
	if err != nil {
		return refusal.New(placementv1beta1.ReasonSyncWorkFailed, invalid+": %w", err)
	}
	if is != id {
		return fmt.Errorf("the overrides make it %s: they must not change apiVersion, kind, name or namespace", nameOf(is))
	}
	return nil
}

// patch applies one rule.
func patch(raw []byte, operations []placementv1beta1.JSONPatchOverride, member Member) ([]byte, error) {
	for _, operation := range operations {
		one, err := operationOf(operation, member)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", operation.Operator, operation.Path, err)
		}
		if raw, err = (jsonpatch.Patch{one}).Apply(raw); err != nil {
			return nil, fmt.Errorf("%s %s: %w", operation.Operator, operation.Path, err)
		}
	}
	return raw, nil
}

func operationOf(o placementv1beta1.JSONPatchOverride, member Member) (jsonpatch.Operation, error) {
	op, err := json.Marshal(o.Operator)
	if err != nil {
		return nil, err
	}
	path, err := json.Marshal(o.Path)
	if err != nil {
		return nil, err
	}
	one := jsonpatch.Operation{"op": new(json.RawMessage(op)), "path": new(json.RawMessage(path))}
	if o.Operator == placementv1beta1.JSONPatchRemove {
		return one, nil
	}
	value, err := Expand(o.Value.Raw, member)
	if err != nil {
		return nil, err
	}
	one["value"] = new(json.RawMessage(value))
	return one, nil
}

func identify(raw []byte) (placementv1beta1.ResourceIdentifier, error) {
	id, err := snapshot.Identify(raw)
	if err == nil && id.Kind == "" {
		err = errors.New("it has no kind")
	}
	return id, err
}

func nameOf(id placementv1beta1.ResourceIdentifier) string {
	return manifest.Key{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}.String()
}
