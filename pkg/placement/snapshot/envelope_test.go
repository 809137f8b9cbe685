// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

func snapshotOf(manifests ...string) *placementv1beta1.ClusterResourceSnapshot {
	s := &placementv1beta1.ClusterResourceSnapshot{}
	s.Name = "p-0-snapshot"
	for _, text := range manifests {
		s.Spec.SelectedResources = append(s.Spec.SelectedResources, manifest(text))
	}
	return s
}

const (
	quota   = `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q","namespace":"shop"}}`
	service = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"}}`
	role    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader"}}`
)

func envelope(kind, namespace, data string) string {
	return fmt.Sprintf(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":%q,"metadata":{"name":"e","namespace":%q},"data":%s}`, kind, namespace, data)
}

// configMapEnvelope is an annotated ConfigMap; its data is YAML.
func configMapEnvelope(namespace, data string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"e","namespace":%q,"annotations":{"kubernetes-fleet.io/envelope-configmap":"true"}},"data":{%s}}`,
		namespace, strings.Replace(data, "a:", `"a":`, 1))
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

func TestEnvelopes_AnnotatedConfigMapOnlyIfEnabled(t *testing.T) {
	s := snapshotOf(configMapEnvelope("shop", "a: "+quoted(quota)+`,"b":`+quoted("kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: reader}")), service)
	for on, want := range map[bool][]string{
		false: {"p-0-snapshot ConfigMap Service"},
		true:  {"p-0-snapshot Service", "ConfigMap shop/e ResourceQuota ClusterRole"},
	} {
		group := &Group{}
		if err := group.add(s, Envelopes{ConfigMaps: on}); err != nil || group.Fault != nil {
			t.Fatal(err, group.Fault)
		}
		var got []string
		for _, part := range group.Parts {
			line := part.Snapshot
			if part.Envelope != nil {
				line = string(part.Envelope.Type) + " " + part.Envelope.Namespace + "/" + part.Envelope.Name
			}
			for _, id := range part.Resources {
				line += " " + id.Kind
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with ConfigMaps %t (-want +got):\n%s", on, diff)
		}
		if n := (Envelopes{ConfigMaps: on}).count(s.Spec.SelectedResources); (n == 1) != on {
			t.Errorf("with ConfigMaps %t there are %d envelopes", on, n)
		}
	}
}

func TestGroup_EnvelopeIsSeparatePart(t *testing.T) {
	group := &Group{}
	s := snapshotOf(service, envelope("ResourceEnvelope", "shop", `{"a":`+quota+`,"b":`+service+`}`), role)
	if err := group.add(s, Envelopes{}); err != nil {
		t.Fatal(err)
	}
	if group.Fault != nil {
		t.Fatal(group.Fault)
	}
	var got [][]string
	for _, part := range group.Parts {
		line := []string{"snapshot"}
		if part.Envelope != nil {
			line[0] = string(part.Envelope.Type) + " " + part.Envelope.Namespace + "/" + part.Envelope.Name
		}
		for i, m := range part.Manifests {
			line = append(line, part.Resources[i].Kind)
			if !strings.Contains(string(m.Raw), `"kind":"`+part.Resources[i].Kind+`"`) {
				t.Errorf("resource %v is not manifest %s", part.Resources[i], m.Raw)
			}
		}
		got = append(got, line)
	}
	want := [][]string{{"snapshot", "Service", "ClusterRole"}, {"ResourceEnvelope shop/e", "Service", "ResourceQuota"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	var selected []string
	for _, id := range group.Resources {
		selected = append(selected, id.Kind)
	}
	if diff := cmp.Diff([]string{"Service", "ResourceEnvelope", "ClusterRole"}, selected); diff != "" {
		t.Errorf("selected resources (-want +got):\n%s", diff)
	}
}

func TestOpenEnvelope_AcceptsGenerateName(t *testing.T) {
	group := &Group{}
	generated := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x-","namespace":"shop"}}`
	if err := group.add(snapshotOf(envelope("ResourceEnvelope", "shop", `{"a":`+generated+`}`)), Envelopes{}); err != nil || group.Fault != nil {
		t.Fatal(err, group.Fault)
	}
	if diff := cmp.Diff(generated, string(group.Parts[len(group.Parts)-1].Manifests[0].Raw)); diff != "" {
		t.Errorf("manifests (-want +got):\n%s", diff)
	}
}

// An object counted as one of the envelope's namespace because of a field with a similar name, with a
// long s.
func TestIdentify_ComparesFieldNamesExactly(t *testing.T) {
	const disguised = `{"apiVersion":"v1","kind":"ConfigMap","\u212aind":"Service","metadata":{"name":"c","namespace":"other","name\u017fpace":"shop","Name":"d"}}`
	id, err := Identify([]byte(disguised))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(placementv1beta1.ResourceIdentifier{Version: "v1", Kind: "ConfigMap", Name: "c", Namespace: "other"}, id); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	group := &Group{}
	if err := group.add(snapshotOf(envelope("ResourceEnvelope", "shop", `{"a":`+disguised+`}`)), Envelopes{}); err != nil {
		t.Fatal(err)
	}
	if group.Fault == nil || !strings.Contains(group.Fault.Error(), `ConfigMap c has namespace "other"`) {
		t.Errorf("fault = %v, want a refusal", group.Fault)
	}
}

func TestOpenEnvelope_ReportsFaults(t *testing.T) {
	cases := map[string]struct{ manifest, want string }{
		"namespaced object in a ClusterResourceEnvelope": {envelope("ClusterResourceEnvelope", "", `{"a":`+quota+`}`), `data["a"]: ResourceQuota q has namespace "shop": a ClusterResourceEnvelope carries`},
		"object of another namespace":                    {envelope("ResourceEnvelope", "other", `{"a":`+quota+`}`), `its own namespace only, which is "other"`},
		"object without a namespace":                     {envelope("ResourceEnvelope", "shop", `{"a":`+role+`}`), `write metadata.namespace "shop"`},
		"no object":                                      {envelope("ResourceEnvelope", "shop", `{"a":{"x":1}}`), "it is no object"},
		"string entry":                                   {envelope("ResourceEnvelope", "shop", `{"a":"x"}`), `data["a"]: decoding`},
		"object of another namespace in a ConfigMap":     {configMapEnvelope("other", "a: "+quoted(quota)), "a ConfigMap carries objects of its own namespace only"},
		"invalid YAML in a ConfigMap":                    {configMapEnvelope("shop", `"a": "{"`), `data["a"]: decoding`},
		"an envelope":                                    {envelope("ResourceEnvelope", "shop", `{"a":`+envelope("ResourceEnvelope", "shop", "{}")+`}`), "inside another"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			group := &Group{}
			if err := group.add(snapshotOf(tc.manifest, service), Envelopes{ConfigMaps: true}); err != nil {
				t.Fatal(err)
			}
			if group.Fault == nil || !strings.Contains(group.Fault.Error(), tc.want) {
				t.Errorf("fault = %v, want %q in it", group.Fault, tc.want)
			}
		})
	}
}

func TestEnvelopes_DoNotOpenCharts(t *testing.T) {
	chart := func(kind string) string {
		return `{"apiVersion":"v1","kind":"` + kind + `","metadata":{"name":"cni","namespace":"addons","annotations":{"fleetgate.io/helm-chart":"cni"}},"data":{"values.yaml":"no object"}}`
	}
	for _, kind := range []string{"ConfigMap", "Secret"} {
		id, err := Identify([]byte(chart(kind)))
		if err != nil {
			t.Fatal(err)
		}
		if got := (Envelopes{Charts: true}).typeOf([]byte(chart(kind)), id); string(got) != kind {
			t.Errorf("type of a %s with a chart = %q", kind, got)
		}
		if got := (Envelopes{ConfigMaps: true}).typeOf([]byte(chart(kind)), id); got != "" {
			t.Errorf("type of a %s with a chart = %q on a gateway without charts", kind, got)
		}
	}
	s := snapshotOf(chart("ConfigMap"), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"plain","namespace":"addons"}}`)
	g := &Group{}
	if err := g.add(s, Envelopes{Charts: true, ConfigMaps: true}); err != nil || g.Fault != nil {
		t.Fatal(err, g.Fault)
	}
	if len(g.Parts) != 2 || g.Parts[0].Chart || !g.Parts[1].Chart || g.Parts[1].Envelope.Name != "cni" || len(g.Parts[1].Manifests) != 1 || g.Parts[1].Hash == "" {
		t.Errorf("parts = %+v", g.Parts)
	}
	if n := (Envelopes{Charts: true}).count(s.Spec.SelectedResources); n != 1 {
		t.Errorf("count() = %d", n)
	}
}

func TestOpenEnvelope_RejectsReservedObjects(t *testing.T) {
	const token = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"t","namespace":"shop"},"type":"kubernetes.io/service-account-token"}`
	const accounts = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"open-cluster-management-managed-serviceaccount"}}`
	for name, text := range map[string]string{
		"agent token":                       envelope("ResourceEnvelope", "shop", `{"a":`+token+`}`),
		"agent token in a ConfigMap":        configMapEnvelope("shop", "a: "+quoted(token)),
		"reserved namespace":                envelope("ClusterResourceEnvelope", "", `{"a":`+accounts+`}`),
		"reserved namespace in a ConfigMap": configMapEnvelope("shop", "a: "+quoted(accounts)),
	} {
		t.Run(name, func(t *testing.T) {
			group := &Group{}
			if err := group.add(snapshotOf(text), Envelopes{ConfigMaps: true}); err != nil || group.Fault == nil {
				t.Fatalf("error %v, fault %v: it would be placed", err, group.Fault)
			}
			if got := group.Fault.Error(); !strings.Contains(got, `data["a"]`) || !strings.Contains(got, "fleet keeps its accounts") && !strings.Contains(got, "never expires") {
				t.Errorf("fault = %q, want the entry and the reason", got)
			}
		})
	}
}
