// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/objects"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/selection"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// authorsOf are the permissions of each author of what arrives on a member.
type authorsOf struct{ placement, override, envelope, chart rbac }

// arrivals counts the tested cases.
type arrivals struct{ plain, overridden, enveloped, envelopedOverridden, rendered, valuesOverridden int }

// It follows a placement with every author of what a member gets: everything that arrives must be
// allowed for the placement's author, and be something that the authors of override, envelope and
// chart could have written on the hub. The questions are asked here; the gateway's own packages
// handle snapshots, envelopes, overrides and charts.
func TestProperty_NothingArrivesThatItsAuthorsCouldNotWrite(t *testing.T) {
	var counted arrivals
	for seed := range uint64(seeds) {
		d := newDice(seed)
		s := d.scene()
		may := authorsOf{d.mostRights(), d.mostRights(), d.mostRights(), d.mostRights()}
		set := s.admit(t, d, may)
		group, chosen := s.place(t, d, may.placement)
		if group == nil {
			continue
		}
		set = set.For(chosen, group.Objects())
		for _, part := range group.Parts {
			after, err := set.Apply(part.Manifests, override.Member{Name: "m"})
			if err == nil && part.Chart && len(after) > 0 {
				err = helmchart.ValuesOnly(part.Manifests[0].Raw, after[0].Raw)
			}
			if err != nil {
				break // Nothing of it is sent, and the placement reports why.
			}
			for i := range after {
				if why := s.unauthorizedPart(may, part, part.Manifests[i].Raw, after[i].Raw, &counted); why != "" {
					t.Fatalf("seed %d: %s\nrights %+v\nbefore %s\nafter  %s", seed, why, may, part.Manifests[i].Raw, after[i].Raw)
				}
			}
		}
	}
	for what, n := range map[string]int{
		"objects as they are": counted.plain, "overridden": counted.overridden, "enveloped": counted.enveloped,
		"enveloped and overridden": counted.envelopedOverridden, "charts": counted.rendered, "charts with overridden values": counted.valuesOverridden,
	} {
		if n < 20 {
			t.Errorf("%d %s arrived in %d worlds: this proves too little", n, what, seeds)
		}
	}
}

// unauthorizedPart is the first part of an arrival that none of its authors could have written, or empty.
func (s scene) unauthorizedPart(may authorsOf, part snapshot.Part, before, after []byte, n *arrivals) string {
	object, changed := thingOf(after), !bytes.Equal(before, after)
	source := object
	if part.Envelope != nil {
		source = thing{kind: kindNamed(string(part.Envelope.Type)), namespace: part.Envelope.Namespace, name: part.Envelope.Name}
	}
	if !may.placement.mayHave(source) {
		return fmt.Sprintf("%+v arrives, which the author of the placement may neither read nor place", source)
	}
	switch {
	case part.Chart:
		n.rendered++
		if !may.chart.may(placementv1beta1.RenderVerb, source.resource(), source.namespace, source.name) {
			return fmt.Sprintf("%+v is rendered, and its author cannot render it", source)
		}
		if changed && !bytes.Equal(valuesIn(before), valuesIn(after)) {
			n.valuesOverridden++
			if !may.override.may(placementv1beta1.RenderVerb, source.resource(), source.namespace, source.name) {
				return fmt.Sprintf("%+v is rendered with values of an author who cannot render it", source)
			}
		}
	case part.Envelope != nil:
		n.enveloped++
		if !may.envelope.mayMake(object, "x") {
			return fmt.Sprintf("%+v is in an envelope whose author cannot create it", object)
		}
	default:
		n.plain++
	}
	if !changed {
		return ""
	}
	if n.overridden++; part.Envelope != nil && !part.Chart {
		n.envelopedOverridden++
	}
	if !may.override.mayWrite("update", object) {
		return fmt.Sprintf("%+v is overridden by an author who cannot update it", object)
	}
	return ""
}

// scene is a hub with one user's chart and another user's envelope.
type scene struct {
	world
	chart, envelope thing
	// entries are the contents of the envelope.
	entries []thing
	// namespace is the placement's.
	namespace string
	// refused is what its author has no permission to write.
	refused []thing
}

func (d dice) scene() scene {
	s := scene{world: world{}, namespace: pick(d, []string{"", "a"})}
	d.fill(s.world, d.IntN(10))
	s.chart = thing{kind: kindNamed(pick(d, []string{"ConfigMap", "Secret"})), namespace: pick(d, namespaces), name: pick(d, names)}
	s.envelope = thing{kind: kindNamed(pick(d, []string{"ResourceEnvelope", "ResourceEnvelope", "ClusterResourceEnvelope"})), name: pick(d, names)}
	if s.envelope.kind.Namespaced {
		s.envelope.namespace = pick(d, namespaces)
	}
	for range 1 + d.IntN(3) {
		if one := d.thing(); one.kind.Group != placementv1beta1.GroupName && one.namespace == s.envelope.namespace && !s.world[one] {
			s.entries = append(s.entries, one)
		}
	}
	return s
}

// mostRights often returns all permissions, so that a missing one is missing for only one author.
func (d dice) mostRights() rbac {
	if d.IntN(3) > 0 {
		return rbac{everythingIn("", anything)}
	}
	return append(d.rights(), d.rights()...)
}

// admit checks chart, envelope and override, and removes what is refused.
func (s *scene) admit(t *testing.T, d dice, may authorsOf) override.Set {
	t.Helper()
	s.write(s.envelope, allowed(t, may.envelope, s.enveloping()))
	// Policy fleetgate-helm-charts in the API server checks no more than this.
	s.write(s.chart, may.chart.may(placementv1beta1.RenderVerb, s.chart.resource(), s.chart.namespace, s.chart.name))
	one, policy := d.target(*s), d.policy()
	if one.kind.Namespaced {
		written := &placementv1beta1.ResourceOverrideSnapshot{}
		written.Namespace, written.Spec.OverrideSpec = one.namespace, placementv1beta1.ResourceOverrideSpec{Policy: policy, ResourceSelectors: []placementv1beta1.ResourceSelector{
			{Group: one.kind.Group, Version: "v1", Kind: one.kind.Kind, Name: one.name}}}
		questions, err := OfOverride(one.namespace, &written.Spec.OverrideSpec, s.Resources)
		if err != nil {
			t.Fatal(err)
		}
		if !allowed(t, may.override, questions) {
			return nil
		}
		return override.NewSet(override.OfNamespace(written))
	}
	written := &placementv1beta1.ClusterResourceOverrideSnapshot{}
	written.Spec.OverrideSpec = placementv1beta1.ClusterResourceOverrideSpec{Policy: policy, ClusterResourceSelectors: []placementv1beta1.ResourceSelectorTerm{
		{Group: one.kind.Group, Version: "v1", Kind: one.kind.Kind, Name: one.name}}}
	questions, err := OfClusterOverride(&written.Spec.OverrideSpec, s.Resources)
	if err != nil {
		t.Fatal(err)
	}
	if !allowed(t, may.override, questions) {
		return nil
	}
	return override.NewSet(override.OfCluster(written))
}

// write adds an object to the hub if it is admitted, and removes it otherwise.
func (s *scene) write(one thing, admitted bool) {
	if admitted {
		s.world[one] = true
		return
	}
	s.refused = append(s.refused, one)
	delete(s.world, one)
}

func (s scene) enveloping() []Question {
	var all []Question
	for _, one := range s.entries {
		object := &unstructured.Unstructured{}
		if err := json.Unmarshal(s.manifest(one), &object.Object); err != nil {
			panic(err)
		}
		all = append(all, OfEnveloped(field.NewPath("data"), object, &Resource{Name: one.kind.Resource, Namespaced: one.kind.Namespaced})...)
	}
	return all
}

func allowed(t *testing.T, may rbac, questions []Question) bool {
	t.Helper()
	refused, err := checkerOf(may).Refused(context.Background(), "this", questions)
	if err != nil {
		t.Fatal(err)
	}
	return len(refused) == 0
}

// target is the object of an override: often one with a part in the scene.
func (d dice) target(s scene) thing {
	known := append([]thing{s.chart, {kind: kindNamed("Namespace"), name: pick(d, namespaces)}}, s.entries...)
	if d.IntN(3) > 0 {
		return pick(d, known)
	}
	return d.thing()
}

// policy has one rule, for all members.
func (d dice) policy() *placementv1beta1.OverridePolicy {
	patch := pick(d, []struct{ path, value string }{
		{"/spec/x", `"overridden"`}, {"/metadata/labels/x", `"overridden"`}, {"/roleRef/name", `"z"`}, {"/data/x", `"b3Zlcg=="`},
		{"/data/values.yaml", `"by: override"`}, {"/data/values.yaml", `"Ynk6IG92ZXJyaWRl"`}, {"/data", `{"values.yaml":"by: override"}`}, {"/data", `{}`},
		{"/binaryData/values.yaml", `"Ynk6IG92ZXJyaWRl"`}, {"/binaryData", `{"chart.tgz":"YQ==","values.yaml":"Ynk6IG92ZXJyaWRl"}`}, {"/stringData", `{"values.yaml":"by: override"}`},
		{"/Data", `{"values.yaml":"Ynk6IG92ZXJyaWRl"}`}, {"/binarydata", `{"values.yaml":"Ynk6IG92ZXJyaWRl"}`},
	})
	return &placementv1beta1.OverridePolicy{OverrideRules: []placementv1beta1.OverrideRule{{
		ClusterSelector: &placementv1beta1.ClusterSelector{}, JSONPatchOverrides: []placementv1beta1.JSONPatchOverride{
			{Operator: placementv1beta1.JSONPatchAdd, Path: patch.path, Value: apiextensionsv1.JSON{Raw: []byte(patch.value)}},
		},
	}}}
}

// place checks the placement's author, and returns the snapshot: nil if the placement is refused,
// or if its contents cannot be opened.
func (s *scene) place(t *testing.T, d dice, may rbac) (*snapshot.Group, types.NamespacedName) {
	t.Helper()
	terms := d.terms(s.namespace)
	if s.namespace != "" {
		for range 2 { // It selects no Namespace, but rather the chart or the envelope.
			one := pick(d, []thing{s.chart, s.envelope, d.thing()})
			terms = append(terms, placementv1beta1.ResourceSelectorTerm{Group: one.kind.Group, Version: "v1", Kind: one.kind.Kind, Name: one.name})
		}
	}
	bound, refusals, err := s.hub().Placement(context.Background(), checkerOf(may), s.namespace, selectingBy(terms))
	if err != nil {
		t.Fatal(err)
	}
	if len(refusals) > 0 {
		return nil, types.NamespacedName{}
	}
	d.fill(s.world, 5) // Objects that are created later.
	for _, one := range s.refused {
		delete(s.world, one)
	}
	master, seen := objects.NewResourceSnapshot(s.namespace), map[thing]bool{}
	stored := selection.ParseBound(bound.String())
	for _, object := range s.selected(s.namespace, terms) {
		if seen[object] || !stored.Covers(object.resource(), object.namespace, object.name) || s.namespace != "" && object.namespace != s.namespace {
			continue
		}
		seen[object] = true
		manifest := placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: s.manifest(object)}}
		master.GetSpec().SelectedResources = append(master.GetSpec().SelectedResources, manifest)
	}
	master.SetAnnotations(map[string]string{placementv1beta1.NumberOfResourceSnapshotsAnnotation: "1", placementv1beta1.ResourceHashAnnotation: "h"})
	contents := snapshot.NewContents(nothing{}, storedSnapshot{of: master}, snapshot.Envelopes{Charts: true})
	group, err := contents.Group(context.Background(), types.NamespacedName{Namespace: s.namespace, Name: "p-0-snapshot"})
	if err != nil {
		t.Fatal(err)
	}
	if group.Fault != nil {
		return nil, types.NamespacedName{}
	}
	return group, types.NamespacedName{Namespace: s.namespace, Name: "p"}
}

// manifest is an object as the hub has it.
func (s scene) manifest(of thing) []byte {
	object := map[string]any{
		"apiVersion": of.kind.GroupVersion().String(), "kind": of.kind.Kind, "spec": map[string]any{"x": "hub"}, "data": map[string]any{"x": "aHVi"},
		"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "x"},
	}
	metadata := map[string]any{"name": of.name, "labels": map[string]any{"a": "b"}}
	if of.namespace != "" {
		metadata["namespace"] = of.namespace
	}
	object["metadata"] = metadata
	switch {
	case of == s.chart && of.kind.Kind == "Secret":
		metadata["annotations"] = map[string]any{placementv1beta1.HelmChartAnnotation: "chart"}
		object["data"] = map[string]any{"chart.tgz": "YQ==", "values.yaml": "Ynk6IGNoYXJ0"}
	case of == s.chart:
		metadata["annotations"] = map[string]any{placementv1beta1.HelmChartAnnotation: "chart"}
		object["binaryData"], object["data"] = map[string]any{"chart.tgz": "YQ=="}, map[string]any{"values.yaml": "by: chart"}
	case of == s.envelope:
		entries := map[string]json.RawMessage{}
		for i, one := range s.entries {
			entries[fmt.Sprint(i)] = s.manifest(one)
		}
		object["data"] = entries
	case of.kind.Group == placementv1beta1.GroupName:
		object["data"] = map[string]any{}
	}
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return raw
}

// valuesIn are the values of a chart, nil if nothing can be rendered from it.
func valuesIn(source []byte) []byte {
	release, err := helmchart.Read(source, override.Member{Name: "m"}, "")
	if err != nil {
		return nil
	}
	return release.Values
}

func thingOf(manifest []byte) thing {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(manifest, &object.Object); err != nil {
		panic(err)
	}
	return thing{kind: kindNamed(object.GetKind()), namespace: object.GetNamespace(), name: object.GetName()}
}

func kindNamed(name string) selection.Kind {
	for _, k := range kinds {
		if k.Kind == name {
			return k
		}
	}
	panic("no kind " + name)
}

// nothing is a cache without snapshots.
type nothing struct{ client.Reader }

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(placementv1beta1.Resource("resourcesnapshots"), key.Name)
}

// storedSnapshot is a hub with one snapshot.
type storedSnapshot struct {
	client.Reader
	of placementv1beta1.ResourceSnapshotObject
}

func (s storedSnapshot) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *placementv1beta1.ClusterResourceSnapshot:
		s.of.(*placementv1beta1.ClusterResourceSnapshot).DeepCopyInto(into)
	case *placementv1beta1.ResourceSnapshot:
		s.of.(*placementv1beta1.ResourceSnapshot).DeepCopyInto(into)
	}
	return nil
}
