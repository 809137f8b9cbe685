// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// Envelopes says which objects are envelopes, in addition to the two envelope kinds.
type Envelopes struct {
	// ConfigMaps treats ConfigMaps with the annotation placementv1beta1.ConfigMapEnvelopeAnnotation as
	// envelopes, as hubs of 2023 did. Nobody checks their contents: authors of ConfigMaps decide what
	// members get.
	ConfigMaps bool
	// Charts treats ConfigMaps and Secrets with the annotation placementv1beta1.HelmChartAnnotation as
	// envelopes. Their contents are known only after rendering for a member.
	Charts bool
}

// typeOf is the envelope type of an object, or "" if it is no envelope.
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

// isChart reports whether an object describes a chart.
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

// annotationsOf returns the annotations of an object; none if it cannot be decoded.
func annotationsOf(raw []byte) map[string]string {
	var object metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return nil
	}
	return object.Annotations
}

// unrendered is the part of a chart before rendering: the object that describes it.
func unrendered(m placementv1beta1.Manifest, id placementv1beta1.ResourceIdentifier, t placementv1beta1.EnvelopeType) (Part, error) {
	part := Part{
		Envelope: &placementv1beta1.EnvelopeIdentifier{Name: id.Name, Namespace: id.Namespace, Type: t},
		Chart:    true, Manifests: []placementv1beta1.Manifest{m}, Resources: []placementv1beta1.ResourceIdentifier{id},
	}
	var err error
	part.Hash, err = Hash(part.Manifests)
	return part, err
}

// envelopeType is the envelope type of a kind, or "" if it is no envelope kind.
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

// openEnvelope returns the contents of an envelope as its own part. The order does not depend on the
// keys that the user chose: by text, descending. An error tells the author of the envelope what to
// change.
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
			inner, err = identifyInside(id, content)
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

// contentOf is an object in an envelope; ConfigMaps contain YAML text.
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

// identifyInside names an object in an envelope, and rejects what no envelope may contain.
func identifyInside(envelope placementv1beta1.ResourceIdentifier, content []byte) (placementv1beta1.ResourceIdentifier, error) {
	id, err := Identify(content)
	if err != nil {
		return id, err
	}
	var object unstructured.Unstructured
	if err := utiljson.Unmarshal(content, &object.Object); err != nil {
		return id, fmt.Errorf("decoding: %w", err)
	}
	// The member's agent rejects objects with generateName in the status, where clients look for it.
	if id.Kind == "" || id.Name == "" && object.GetGenerateName() == "" {
		return id, errors.New("it is no object with kind and metadata.name")
	}
	if err := belongsInside(envelope, id); err != nil {
		return id, err
	}
	// No other check reads ConfigMaps, or envelopes that are older than the rules of reserved objects.
	if why := reserved.Why(&object); why != "" {
		return id, fmt.Errorf("%s %s %s", id.Kind, id.Name, why)
	}
	return id, nil
}

// belongsInside checks the namespace of an object. It never fills in a namespace, because the intended
// one would be a guess.
func belongsInside(envelope, inner placementv1beta1.ResourceIdentifier) error {
	switch {
	case envelopeType(inner) != "":
		return errors.New("an envelope cannot be inside another")
	case envelope.Kind == string(placementv1beta1.ConfigMapEnvelopeType) && inner.Namespace == "":
		return nil // A ConfigMap can contain cluster-scoped objects too.
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

// count returns how many of the manifests are envelopes. Manifests that cannot be decoded do not count.
func (e Envelopes) count(manifests []placementv1beta1.Manifest) int {
	n := 0
	for _, m := range manifests {
		if id, err := Identify(m.Raw); err == nil && e.typeOf(m.Raw, id) != "" {
			n++
		}
	}
	return n
}

func (g *Group) add(s placementv1beta1.ResourceSnapshotObject, envelopes Envelopes) error {
	part := Part{Snapshot: s.GetName()}
	var opened []Part
	for i, m := range s.GetSpec().SelectedResources {
		id, err := Identify(m.Raw)
		if err != nil {
			return fmt.Errorf("resource %d of resource snapshot %q: %w", i, s.GetName(), err)
		}
		g.Resources = append(g.Resources, id)
		g.size += len(m.Raw)
		t := envelopes.typeOf(m.Raw, id)
		if t == "" {
			part.Manifests, part.Resources = append(part.Manifests, m), append(part.Resources, id)
			continue
		}
		var inside Part
		if envelopes.isChart(m.Raw, id) {
			inside, err = unrendered(m, id, t)
		} else {
			inside, err = openEnvelope(m.Raw, id, t)
		}
		if err != nil {
			g.Fault = errors.Join(g.Fault, fmt.Errorf("%s %q: %w", id.Kind, klog.KRef(id.Namespace, id.Name), err))
			continue
		}
		inside.Snapshot = s.GetName()
		opened = append(opened, inside)
	}
	var err error
	if part.Hash, err = Hash(part.Manifests); err != nil {
		return fmt.Errorf("resource snapshot %q: %w", s.GetName(), err)
	}
	g.Parts = append(append(g.Parts, part), opened...)
	return nil
}

// Identify names the object of a manifest. Missing fields are empty. Field names are compared exactly,
// as API servers do: encoding/json also accepts "Kind" for kind, and "name\u017fpace" for namespace,
// which are other fields.
func Identify(raw []byte) (placementv1beta1.ResourceIdentifier, error) {
	var object metav1.PartialObjectMetadata
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		return placementv1beta1.ResourceIdentifier{}, fmt.Errorf("decoding: %w", err)
	}
	gvk := object.GroupVersionKind()
	return placementv1beta1.ResourceIdentifier{
		Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: object.Name, Namespace: object.Namespace,
	}, nil
}

// Hash is a hash of a list of manifests. The API server may return a manifest in another encoding than
// it got; the hash is the same.
func Hash(manifests []placementv1beta1.Manifest) (string, error) {
	sum := sha256.New()
	for i, m := range manifests {
		var value any
		if err := utiljson.Unmarshal(m.Raw, &value); err != nil {
			return "", fmt.Errorf("decoding manifest %d: %w", i, err)
		}
		text, err := json.Marshal(value)
		if err != nil {
			return "", fmt.Errorf("encoding manifest %d: %w", i, err)
		}
		sum.Write(append(text, '\n'))
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
