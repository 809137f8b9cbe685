// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

func kindsOfAMember() kindFinder {
	mapper := apimeta.NewDefaultRESTMapper(nil)
	core := schema.GroupVersion{Version: "v1"}
	mapper.Add(core.WithKind("ConfigMap"), apimeta.RESTScopeNamespace)
	mapper.Add(core.WithKind("Namespace"), apimeta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, apimeta.RESTScopeNamespace)
	return mapper
}

func raw(texts ...string) [][]byte {
	var list [][]byte
	for _, text := range texts {
		list = append(list, []byte(text))
	}
	return list
}

func TestPlan(t *testing.T) {
	const configMapA = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`
	cases := map[string]struct {
		manifests [][]byte
		want      []string // the reason of each refusal
	}{
		"good ones":                            {raw(configMapA, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`), []string{"", ""}},
		"no JSON":                              {raw("x"), []string{"Undecodable"}},
		"a generated name":                     {raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}`), []string{"GeneratedName"}},
		"one object twice":                     {raw(configMapA, configMapA, configMapA), []string{"", "Duplicated", "Duplicated"}},
		"two unreadable ones":                  {raw("x", "x"), []string{"Undecodable", "Undecodable"}},
		"an unknown kind":                      {raw(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`), []string{"Unserved"}},
		"an unknown version":                   {raw(`{"apiVersion":"apps/v9","kind":"Deployment","metadata":{"namespace":"ns","name":"a"}}`), []string{"Unserved"}},
		"a missing namespace":                  {raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`), []string{"NotAcceptable"}},
		"a namespace of a cluster-scoped kind": {raw(`{"apiVersion":"v1","kind":"Namespace","metadata":{"namespace":"ns","name":"a"}}`), []string{"NotAcceptable"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			items, err := plan(tc.manifests, kindsOfAMember())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for place, it := range items {
				if it.Ref.Ordinal != place {
					t.Errorf("the manifest at place %d says %d", place, it.Ref.Ordinal)
				}
				reason := ""
				if it.Refused != nil {
					reason = it.Refused.Reason
				}
				got = append(got, reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlan_IdentifiesAManifestWithoutAName(t *testing.T) {
	items, err := plan(raw(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","generateName":"a-"}}`), kindsOfAMember())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(manifest.Ref{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "ns"}, items[0].Ref); diff != "" {
		t.Errorf("identity (-want +got):\n%s", diff)
	}
	if left := leftovers([]Entry{entryOf("old", "1")}, items); len(left) > 0 {
		t.Errorf("%v would be removed, and it is not known what the manifest is for", left)
	}
}

func TestPlan_DropsTheNamespaceOfClusterScopedKindsIfTheDialectAllowsIt(t *testing.T) {
	dialect := ours()
	dialect.DropsNamespace = true
	e := &Engine{Dialect: dialect, family: testFamily(""), kinds: &servedKinds{current: kindsOfAMember()}, caches: newCaches()}
	manifests := raw(`{"apiVersion":"v1","kind":"Namespace","metadata":{"namespace":"ns","name":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`)
	for _, applyItems := range []string{"first", "second, which remembers"} {
		items, err := e.Plan("work", manifests)
		if err != nil {
			t.Fatal(err)
		}
		for place, namespace := range []string{"", "ns"} {
			it, err := e.decoded(items[place])
			if err != nil || it.Refused != nil {
				t.Fatal(err, it.Refused)
			}
			if dropped := namespace == ""; it.NamespaceDropped != dropped {
				t.Errorf("at the %s look the namespace of %s is dropped: %t, want %t", applyItems, it.Ref.Kind, it.NamespaceDropped, dropped)
			}
			if it.Ref.Namespace != namespace || it.object.GetNamespace() != namespace {
				t.Errorf("at the %s look %s is in namespace %q, by its name in %q", applyItems, it.Ref.Kind, it.object.GetNamespace(), it.Ref.Namespace)
			}
		}
	}
}

type deafMember struct{}

func (deafMember) RESTMapping(schema.GroupKind, ...string) (*apimeta.RESTMapping, error) {
	return nil, errors.New("no answer")
}

func TestPlan_ReturnsAnErrorWhenTheMemberIsUnreachable(t *testing.T) {
	_, err := plan(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`), deafMember{})
	if err == nil {
		t.Error("there is no error")
	}
}

func TestPlan_DropsAnnotationsOfAnotherHub(t *testing.T) {
	items, err := plan(raw(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a","annotations":{
		"mine":"1","kubernetes-fleet.io/spec-hash":"2","kubernetes-fleet.io/last-applied-configuration":"3"}}}`), kindsOfAMember())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"mine": "1"}, items[0].object.GetAnnotations()); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

func TestPlan_IsCachedWhileManifestsAndKindsAreUnchanged(t *testing.T) {
	const a = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"},"data":{"x":"1"}}`
	const unknown = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`
	known, deaf := kindsOfAMember(), deafMember{}
	cases := map[string]struct {
		first, second [][]byte
		forget        bool
		recomputed    bool
	}{
		"the same manifests":                         {raw(a, "x"), raw(a, "x"), false, false},
		"another manifest":                           {raw(a), raw(strings.Replace(a, "1", "2", 1)), false, true},
		"an additional manifest":                     {raw(a), raw(a, a), false, true},
		"the same text, split differently":           {raw(a, "", "x"), raw(a, "x", ""), false, true},
		"a kind that the member may have by now":     {raw(a, unknown), raw(a, unknown), false, true},
		"kinds that the member may have changed now": {raw(a), raw(a), true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &Engine{Dialect: ours(), family: testFamily(""), kinds: &servedKinds{current: known}, caches: newCaches()}
			first, err := e.Plan("work", tc.first)
			if err != nil {
				t.Fatal(err)
			}
			if tc.forget {
				e.ForgetPlan("work")
			}
			e.kinds.current = deaf
			second, err := e.Plan("work", tc.second)
			if recomputed := err != nil; recomputed != tc.recomputed {
				t.Fatalf("it is recomputed: %t", recomputed)
			}
			for place, it := range second {
				if it.isReadable() {
					if it, err = e.decoded(it); err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(first[place], it, cmp.AllowUnexported(Item{}, refusal.Refusal{})); diff != "" {
					t.Errorf("the item at place %d (-first +second):\n%s", place, diff)
				}
			}
		})
	}
}

func TestInWaves(t *testing.T) {
	items, err := plan(raw(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","name":"a"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"}}`,
		`x`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"b"}}`,
	), kindsOfAMember())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int{{3}, {1, 4}, {0}}, inWaves(items)); diff != "" {
		t.Errorf("waves (-want +got):\n%s", diff)
	}
}
