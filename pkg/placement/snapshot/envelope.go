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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// Envelopes tells which objects are envelopes, beside those of the two kinds that are
// made for it.
type Envelopes struct {
	// ConfigMaps makes envelopes of ConfigMaps with the annotation
	// placementv1beta1.ConfigMapEnvelopeAnnotation, as hubs of 2023 did. Nobody checks
	// what is in them: who writes ConfigMaps decides what members get.
	ConfigMaps bool
	// Charts makes envelopes of ConfigMaps and Secrets with the annotation
	// placementv1beta1.HelmChartAnnotation. What is in them is known only when they have
	// been rendered for a member.
	Charts bool
}

// typeOf is the type of envelope that an object is, or "" if it is none.
func (e Envelopes) typeOf(raw []byte, id placementv1beta1.ResourceIdentifier) placementv1beta1.EnvelopeType {
	isConfigMap := id.Group == "" && id.Kind == string(placementv1beta1.ConfigMapEnvelopeType)
	switch {
	case e.isChart(raw, id):
		return placementv1beta1.EnvelopeType(id.Kind)
	case e.ConfigMaps && isConfigMap && annotationsOf(raw)[placementv1beta1.ConfigMapEnvelopeAnnotation] == "true":
		return placementv1beta1.ConfigMapEnvelopeType
	}
	return envelopeType(id)
}

// isChart reports whether an object describes a chart that is to be rendered.
func (e Envelopes) isChart(raw []byte, id placementv1beta1.ResourceIdentifier) bool {
	if !e.Charts || id.Group != "" {
		return false
	}
	switch placementv1beta1.EnvelopeType(id.Kind) {
	case placementv1beta1.ConfigMapEnvelopeType, placementv1beta1.SecretEnvelopeType:
		_, annotated := annotationsOf(raw)[placementv1beta1.HelmChartAnnotation]
		return annotated
	}
	return false
}

// annotationsOf are the annotations of an object; one that cannot be decoded has none.
func annotationsOf(raw []byte) map[string]string {
	var object metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil
	}
	return object.Annotations
}

// unrendered is the part of a chart: for the time being the object that describes it.
func unrendered(m placementv1beta1.Manifest, id placementv1beta1.ResourceIdentifier, t placementv1beta1.EnvelopeType) (Part, error) {
	part := Part{
		Envelope: &placementv1beta1.EnvelopeIdentifier{Name: id.Name, Namespace: id.Namespace, Type: t},
		Chart:    true, Manifests: []placementv1beta1.Manifest{m}, Resources: []placementv1beta1.ResourceIdentifier{id},
	}
	var err error
	part.Hash, err = Hash(part.Manifests)
	return part, err
}

// envelopeType is the type of envelope that a kind is made for, or "" for none.
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
func openEnvelope(raw []byte, id placementv1beta1.ResourceIdentifier, t placementv1beta1.EnvelopeType) (Part, error) {
	var envelope struct {
		Data map[string]json.RawMessage `json:"data"`
	}
	if err := utiljson.Unmarshal(raw, &envelope); err != nil {
		return Part{}, fmt.Errorf("decoding: %w", err)
	}
	part := Part{Envelope: &placementv1beta1.EnvelopeIdentifier{Name: id.Name, Namespace: id.Namespace, Type: t}}
	type entry struct {
		raw []byte
		id  placementv1beta1.ResourceIdentifier
	}
	var entries []entry
	for _, key := range slices.Sorted(maps.Keys(envelope.Data)) {
		content, err := contentOf(envelope.Data[key], t)
		var inner placementv1beta1.ResourceIdentifier
		if err == nil {
			inner, err = Identify(content)
		}
		if err == nil && !isNamed(content, inner) {
			err = errors.New("it is no object with kind and metadata.name")
		}
		if err == nil {
			err = belongsInside(id, inner)
		}
		if err == nil {
			err = mayBePlaced(content, inner)
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

// contentOf is an object in an envelope; ConfigMaps have it as a text of YAML.
func contentOf(entry json.RawMessage, t placementv1beta1.EnvelopeType) ([]byte, error) {
	if t != placementv1beta1.ConfigMapEnvelopeType {
		return entry, nil
	}
	var text string
	if err := utiljson.Unmarshal(entry, &text); err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	content, err := untrusted.ToJSON([]byte(text), untrusted.Object)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return content, nil
}

// isNamed lets pass what wants a name made for it: that it gets none is said by the
// member's agent, where clients look for it.
func isNamed(content []byte, id placementv1beta1.ResourceIdentifier) bool {
	var object metav1.PartialObjectMetadata
	return id.Kind != "" && (id.Name != "" || utiljson.Unmarshal(content, &object) == nil && object.GenerateName != "")
}

// belongsInside checks an object by its namespace: nothing is filled in for the
// user, since what is meant would be a guess.
func belongsInside(envelope, inner placementv1beta1.ResourceIdentifier) error {
	switch {
	case envelopeType(inner) != "":
		return errors.New("an envelope cannot be inside another")
	case envelope.Kind == string(placementv1beta1.ConfigMapEnvelopeType) && inner.Namespace == "":
		return nil // A ConfigMap may carry what is in no namespace too.
	case envelope.Namespace == "" && inner.Namespace != "":
		return fmt.Errorf("%s %s has namespace %q: a ClusterResourceEnvelope carries cluster-scoped objects only, put it into a ResourceEnvelope of that namespace",
			inner.Kind, inner.Name, inner.Namespace)
	case envelope.Namespace != "" && inner.Namespace == "":
		return fmt.Errorf("%s %s has no namespace: write metadata.namespace %q", inner.Kind, inner.Name, envelope.Namespace)
	case inner.Namespace != envelope.Namespace:
		return fmt.Errorf("%s %s has namespace %q: a %s carries objects of its own namespace only, which is %q",
			inner.Kind, inner.Name, inner.Namespace, envelope.Kind, envelope.Namespace)
	}
	return nil
}

// mayBePlaced keeps out what the fleet has for itself on members: nothing else looks into
// ConfigMaps, or into envelopes that are older than the rule.
func mayBePlaced(content []byte, id placementv1beta1.ResourceIdentifier) error {
	var object unstructured.Unstructured
	if err := utiljson.Unmarshal(content, &object.Object); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	if why := reserved.Why(&object); why != "" {
		return fmt.Errorf("%s %s %s", id.Kind, id.Name, why)
	}
	return nil
}

// count is how many of the manifests are envelopes; what cannot be
// decoded is none.
func (e Envelopes) count(manifests []placementv1beta1.Manifest) int {
	n := 0
	for _, m := range manifests {
		if id, err := Identify(m.Raw); err == nil && e.typeOf(m.Raw, id) != "" {
			n++
		}
	}
	return n
}
