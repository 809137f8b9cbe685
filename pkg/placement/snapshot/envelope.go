// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// envelopeType is the type of envelope that an object is, or "" if it is none.
func envelopeType(id placementv1beta1.ResourceIdentifier) placementv1beta1.EnvelopeType {
	if id.Group != placementv1beta1.GroupName {
		return ""
	}
	switch t := placementv1beta1.EnvelopeType(id.Kind); t {
	case placementv1beta1.ClusterResourceEnvelopeType, placementv1beta1.ResourceEnvelopeType:
		return t
	}
	return ""
}

// openEnvelope returns what is in an envelope as a part of its own. Its order
// does not depend on the keys that the user chose: by text, the last first. An
// error tells the author of the envelope what to change.
func openEnvelope(raw []byte, id placementv1beta1.ResourceIdentifier) (Part, error) {
	var envelope struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &envelope); err != nil {
		return Part{}, fmt.Errorf("decoding: %w", err)
	}
	part := Part{Envelope: &placementv1beta1.EnvelopeIdentifier{Name: id.Name, Namespace: id.Namespace, Type: envelopeType(id)}}
	type entry struct {
		raw []byte
		id  placementv1beta1.ResourceIdentifier
	}
	var entries []entry
	for _, key := range slices.Sorted(maps.Keys(envelope.Data)) {
		content := envelope.Data[key]
		inner, err := Identify(content)
		if err == nil {
			err = belongsInside(id, inner)
		}
		if err != nil {
			return Part{}, fmt.Errorf("data[%q]: %w", key, err)
		}
		inner.Envelope = part.Envelope
		entries = append(entries, entry{raw: content, id: inner})
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(b.raw, a.raw) })
	for _, e := range entries {
		part.Manifests = append(part.Manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: e.raw}})
		part.Resources = append(part.Resources, e.id)
	}
	var err error
	part.Hash, err = Hash(part.Manifests)
	return part, err
}

// belongsInside checks an object by its namespace: nothing is filled in for the
// user, since what is meant would be a guess.
func belongsInside(envelope, inner placementv1beta1.ResourceIdentifier) error {
	switch {
	case inner.Kind == "" || inner.Name == "":
		return errors.New("it is no object with kind and metadata.name")
	case envelopeType(inner) != "":
		return errors.New("an envelope cannot be inside another")
	case envelope.Namespace == "" && inner.Namespace != "":
		return fmt.Errorf("%s %s has namespace %q: a ClusterResourceEnvelope carries cluster-scoped objects only, put it into a ResourceEnvelope of that namespace",
			inner.Kind, inner.Name, inner.Namespace)
	case envelope.Namespace != "" && inner.Namespace == "":
		return fmt.Errorf("%s %s has no namespace: write metadata.namespace %q", inner.Kind, inner.Name, envelope.Namespace)
	case inner.Namespace != envelope.Namespace:
		return fmt.Errorf("%s %s has namespace %q: a ResourceEnvelope carries objects of its own namespace only, which is %q",
			inner.Kind, inner.Name, inner.Namespace, envelope.Namespace)
	}
	return nil
}

// countEnvelopes is how many of the manifests are envelopes; what cannot be
// decoded is none.
func countEnvelopes(manifests []placementv1beta1.Manifest) int {
	n := 0
	for _, m := range manifests {
		if id, err := Identify(m.Raw); err == nil && envelopeType(id) != "" {
			n++
		}
	}
	return n
}
