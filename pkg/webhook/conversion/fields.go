// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/api/validation"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
)

// fields are those that only v1alpha1 has. The exported ones are the content of FieldsAnnotation.
type fields struct {
	AddOnConfiguration addonv1alpha1.ConfigCoordinates `json:"addOnConfiguration,omitzero"`
	// KubeClientDriver is the driver of an add-on without a registration that could have it.
	KubeClientDriver string `json:"kubeClientDriver,omitempty"`
	// Units are the organizational units of identities for the hub's API server, by the index of the
	// registration.
	Units map[int][]string `json:"organizationUnits,omitempty"`
	// Referents are names of configurations that differ from the desired ones, by the index of the
	// reference.
	Referents map[int]savedReferent `json:"configReferents,omitempty"`

	// installNamespace has an annotation of its own.
	installNamespace string
	// incomplete is true if the annotations do not have everything.
	incomplete bool
}

// savedReferent is the name of a configuration, with what it was saved for. If a client changes that
// in v1beta1, the name follows.
type savedReferent struct {
	addonv1alpha1.ConfigGroupResource `json:",inline"`
	Namespace                         string                        `json:"namespace,omitempty"`
	Name                              string                        `json:"name"`
	Desired                           *addonv1alpha1.ConfigReferent `json:"desired,omitempty"`
}

func (f *fields) takeAddOnConfiguration(from map[string]any) {
	configuration := child(from, "addOnConfiguration")
	generation, _ := configuration["lastObservedGeneration"].(int64)
	f.AddOnConfiguration = addonv1alpha1.ConfigCoordinates{
		CRDName: text(configuration, "crdName"), CRName: text(configuration, "crName"), LastObservedGeneration: generation,
	}
	delete(from, "addOnConfiguration")
}

func (f *fields) giveAddOnConfiguration(to map[string]any) {
	configuration := map[string]any{}
	set(configuration, "crdName", f.AddOnConfiguration.CRDName)
	set(configuration, "crName", f.AddOnConfiguration.CRName)
	if generation := f.AddOnConfiguration.LastObservedGeneration; generation != 0 {
		configuration["lastObservedGeneration"] = generation
	}
	if len(configuration) > 0 {
		to["addOnConfiguration"] = configuration
	}
}

func (f *fields) takeUnits(i int, subject map[string]any) {
	items, _ := subject["organizationUnit"].([]any)
	delete(subject, "organizationUnit")
	var units []string
	for _, item := range items {
		if unit, ok := item.(string); ok {
			units = append(units, unit)
		}
	}
	if len(units) == 0 {
		return
	}
	if f.Units == nil {
		f.Units = map[int][]string{}
	}
	f.Units[i] = units
}

// desiredOf is the name of the desired configuration, or nil.
func desiredOf(reference map[string]any) *addonv1alpha1.ConfigReferent {
	desired, ok := reference["desiredConfig"].(map[string]any)
	if !ok {
		return nil
	}
	return &addonv1alpha1.ConfigReferent{Namespace: text(desired, "namespace"), Name: text(desired, "name")}
}

func (f *fields) takeReferent(i int, reference map[string]any) {
	saved := savedReferent{ConfigGroupResource: kindOf(reference), Namespace: text(reference, "namespace"), Name: text(reference, "name"), Desired: desiredOf(reference)}
	delete(reference, "namespace")
	delete(reference, "name")
	if saved.Name == "" || saved.Desired != nil && *saved.Desired == (addonv1alpha1.ConfigReferent{Namespace: saved.Namespace, Name: saved.Name}) {
		return
	}
	if f.Referents == nil {
		f.Referents = map[int]savedReferent{}
	}
	f.Referents[i] = saved
}

// giveReferent sets the name of a configuration, which v1alpha1 requires.
func (f *fields) giveReferent(i int, reference map[string]any) error {
	desired := desiredOf(reference)
	if saved, found := f.Referents[i]; found && saved.Name != "" && saved.ConfigGroupResource == kindOf(reference) && equal(saved.Desired, desired) {
		set(reference, "namespace", saved.Namespace)
		set(reference, "name", saved.Name)
		return nil
	}
	if desired == nil {
		return fmt.Errorf("status.configReferences[%d].desiredConfig is missing: v1alpha1, which is stored, cannot express it", i)
	}
	set(reference, "namespace", desired.Namespace)
	set(reference, "name", desired.Name)
	return nil
}

func kindOf(reference map[string]any) addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource{Group: text(reference, "group"), Resource: text(reference, "resource")}
}

func equal(a, b *addonv1alpha1.ConfigReferent) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

// isEmpty is true if FieldsAnnotation is not needed.
func (f *fields) isEmpty() bool {
	return f.AddOnConfiguration == (addonv1alpha1.ConfigCoordinates{}) && f.KubeClientDriver == "" && len(f.Units) == 0 && len(f.Referents) == 0
}

// annotate puts the fields into annotations. An API server rejects larger ones, and then fails each
// list with this object, so it is labelled instead.
func (f *fields) annotate(object map[string]any) {
	metadata := in(object, "metadata")
	annotations, labels := in(metadata, "annotations"), in(metadata, "labels")
	delete(annotations, addonv1beta1.InstallNamespaceAnnotation)
	delete(annotations, addonv1beta1.FieldsAnnotation)
	delete(labels, addonv1beta1.IncompleteLabel)
	saved := map[string]any{}
	set(saved, addonv1beta1.InstallNamespaceAnnotation, f.installNamespace)
	if !f.isEmpty() {
		content, err := json.Marshal(f)
		f.incomplete = f.incomplete || err != nil
		saved[addonv1beta1.FieldsAnnotation] = string(content)
	}
	f.incomplete = f.incomplete || size(annotations)+size(saved) > validation.TotalAnnotationSizeLimitB
	if f.incomplete {
		labels[addonv1beta1.IncompleteLabel] = "true"
	} else {
		for key, value := range saved {
			annotations[key] = value
		}
	}
	dropEmpty(metadata)
}

func size(annotations map[string]any) int {
	total := 0
	for key := range annotations {
		total += len(key) + len(text(annotations, key))
	}
	return total
}

// takeFields reads the fields from annotations and removes these. Clients can write the annotations.
func takeFields(object map[string]any) (fields, error) {
	var saved fields
	metadata := in(object, "metadata")
	annotations := child(metadata, "annotations")
	if _, found := child(metadata, "labels")[addonv1beta1.IncompleteLabel]; found {
		return saved, errors.New("fields of v1alpha1 do not fit into annotations: write this object in v1alpha1")
	}
	content, found := annotations[addonv1beta1.FieldsAnnotation].(string)
	if found {
		decoder := json.NewDecoder(bytes.NewReader([]byte(content)))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&saved)
		if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
		if driver := addonv1alpha1.KubeClientDriver(saved.KubeClientDriver); err == nil && driver != "" && driver != addonv1alpha1.DriverCSR && driver != addonv1alpha1.DriverToken {
			err = fmt.Errorf("kubeClientDriver must be %s or %s", addonv1alpha1.DriverCSR, addonv1alpha1.DriverToken)
		}
		if err != nil {
			return saved, fmt.Errorf("reading annotation %s: %w: remove the annotation", addonv1beta1.FieldsAnnotation, err)
		}
	}
	saved.installNamespace = text(annotations, addonv1beta1.InstallNamespaceAnnotation)
	delete(annotations, addonv1beta1.InstallNamespaceAnnotation)
	delete(annotations, addonv1beta1.FieldsAnnotation)
	dropEmpty(metadata)
	return saved, nil
}

// dropEmpty removes empty labels and annotations.
func dropEmpty(metadata map[string]any) {
	for _, field := range []string{"annotations", "labels"} {
		if value, ok := metadata[field].(map[string]any); ok && len(value) == 0 {
			delete(metadata, field)
		}
	}
}
