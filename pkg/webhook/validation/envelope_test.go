// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/author"
)

func hubResources(kind schema.GroupVersionKind) (author.Resource, bool, error) {
	known := map[string]author.Resource{
		"ConfigMap": {Name: "configmaps", Namespaced: true}, "Role": {Name: "roles", Namespaced: true}, "RoleBinding": {Name: "rolebindings", Namespaced: true},
		"ClusterRole": {Name: "clusterroles"}, "ClusterRoleBinding": {Name: "clusterrolebindings"},
	}
	found, served := known[kind.Kind]
	return found, served, nil
}

func entries(objects ...string) map[string]placementv1beta1.EnvelopedObject {
	data := map[string]placementv1beta1.EnvelopedObject{}
	for i, object := range objects {
		data[string(rune('a'+i))] = placementv1beta1.EnvelopedObject{RawExtension: runtime.RawExtension{Raw: []byte(object)}}
	}
	return data
}

const rbac = `"apiVersion":"rbac.authorization.k8s.io/v1",`

func TestValidateEnvelope(t *testing.T) {
	tests := map[string]struct {
		namespace string
		objects   []string
		want      []string
		needed    []string
	}{
		"what is in a namespace": {
			namespace: "shop", objects: []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"shop"}}`},
			needed: []string{`data[a]: create configmaps "x" in namespace "shop"`, `data[a]: update configmaps "x" in namespace "shop"`},
		},
		"a role needs escalate": {
			namespace: "shop", objects: []string{`{` + rbac + `"kind":"Role","metadata":{"name":"x","namespace":"shop"}}`},
			needed: []string{`data[a]: create roles.rbac.authorization.k8s.io "x" in namespace "shop"`, `data[a]: update roles.rbac.authorization.k8s.io "x" in namespace "shop"`, `data[a]: escalate roles.rbac.authorization.k8s.io "x" in namespace "shop"`},
		},
		"a binding needs bind on the role that it names": {
			namespace: "shop", objects: []string{
				`{` + rbac + `"kind":"RoleBinding","metadata":{"name":"x","namespace":"shop"},"roleRef":{"kind":"ClusterRole","name":"admin"}}`,
				`{` + rbac + `"kind":"RoleBinding","metadata":{"name":"y","namespace":"shop"},"roleRef":{"kind":"Role","name":"view"}}`,
			},
			needed: []string{
				`data[a]: create rolebindings.rbac.authorization.k8s.io "x" in namespace "shop"`, `data[a]: update rolebindings.rbac.authorization.k8s.io "x" in namespace "shop"`, `data[a].roleRef: bind clusterroles.rbac.authorization.k8s.io "admin" in namespace "shop"`,
				`data[b]: create rolebindings.rbac.authorization.k8s.io "y" in namespace "shop"`, `data[b]: update rolebindings.rbac.authorization.k8s.io "y" in namespace "shop"`, `data[b].roleRef: bind roles.rbac.authorization.k8s.io "view" in namespace "shop"`,
			},
		},
		"cluster-wide ones too": {
			objects: []string{
				`{` + rbac + `"kind":"ClusterRole","metadata":{"name":"x"}}`,
				`{` + rbac + `"kind":"ClusterRoleBinding","metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"}}`,
			},
			needed: []string{
				`data[a]: create clusterroles.rbac.authorization.k8s.io "x"`, `data[a]: update clusterroles.rbac.authorization.k8s.io "x"`, `data[a]: escalate clusterroles.rbac.authorization.k8s.io "x"`,
				`data[b]: create clusterrolebindings.rbac.authorization.k8s.io "x"`, `data[b]: update clusterrolebindings.rbac.authorization.k8s.io "x"`, `data[b].roleRef: bind clusterroles.rbac.authorization.k8s.io "cluster-admin"`,
			},
		},
		"a binding to a name that is none needs all": {
			objects: []string{`{` + rbac + `"kind":"ClusterRoleBinding","metadata":{"name":"x"},"roleRef":{"kind":"ClusterRole","name":7}}`},
			needed:  []string{`data[a]: create clusterrolebindings.rbac.authorization.k8s.io "x"`, `data[a]: update clusterrolebindings.rbac.authorization.k8s.io "x"`, `data[a].roleRef: bind clusterroles.rbac.authorization.k8s.io`},
		},
		"a kind that the hub does not serve": {
			objects: []string{`{"apiVersion":"example.org/v1","kind":"Widget","metadata":{"name":"x"}}`},
			needed:  []string{`data[a]: create *.example.org`, `data[a]: update *.example.org`},
		},
		"what the fleet keeps for itself on members": {
			objects: []string{`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"open-cluster-management-managed-serviceaccount"}}`},
			want:    []string{"data[a]: Forbidden: is a namespace in which the fleet keeps its accounts on members: use another name"},
		},
		"a token that never expires": {
			namespace: "shop", objects: []string{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"shop"},"type":"kubernetes.io/service-account-token"}`},
			want: []string{"data[a]: Forbidden: has type kubernetes.io/service-account-token: such a token never expires; use a ManagedServiceAccount, or ask the member for one"},
		},
		"objects in the wrong envelope": {
			namespace: "shop",
			objects: []string{
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other"}}`,
				`{` + rbac + `"kind":"ClusterRole","metadata":{"name":"x","namespace":"shop"}}`,
			},
			want: []string{
				`data[a].metadata.namespace: holds objects of its own namespace, "shop"`,
				`data[b].metadata.namespace: holds objects of its own namespace, "shop"`,
				`data[c]: is cluster-scoped on the hub`,
			},
			// The rights to what does not fit are checked too.
			needed: []string{`data[a]: create configmaps "x"`, `data[a]: update configmaps "x"`, `data[b]: create configmaps "x" in namespace "other"`, `data[b]: update configmaps "x" in namespace "other"`},
		},
		"namespaced objects where there is no namespace": {
			objects: []string{
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"shop"}}`,
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
			},
			want:   []string{"data[a].metadata.namespace: a ClusterResourceEnvelope holds cluster-scoped objects", "data[b]: is namespaced on the hub"},
			needed: []string{`data[a]: create configmaps "x" in namespace "shop"`, `data[a]: update configmaps "x" in namespace "shop"`},
		},
		"what is no object": {
			objects: []string{`{"kind":"ConfigMap"}`, `7`, ``, `{"apiVersion":"v1","kind":"List","items":[]}`, `{"apiVersion":"v1","kind":"Namespace","metadata":{}}`,
				`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"x","annotations":{"y":true}}}`},
			want: []string{
				"data[a]: is no Kubernetes object", "data[b]: is no Kubernetes object", "data[c]: is no Kubernetes object", "data[d]: is a list",
				"data[e].metadata.name: has a name of its own", "data[f].metadata: cannot unmarshal bool into Go struct field ObjectMeta.metadata.annotations",
			},
		},
		"an object with generateName": {
			objects: []string{`{` + rbac + `"kind":"ClusterRole","metadata":{"generateName":"x-"}}`},
			want:    []string{"data[a].metadata.name: has a name of its own"},
			needed:  []string{`data[a]: create clusterroles.rbac.authorization.k8s.io`, `data[a]: update clusterroles.rbac.authorization.k8s.io`, `data[a]: escalate clusterroles.rbac.authorization.k8s.io`},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			data := entries(tt.objects...)
			problems, needed, err := ValidateEnvelope(tt.namespace, data, ChangedEntries(nil, data), hubResources)
			if err != nil {
				t.Fatal(err)
			}
			compareProblems(t, tt.want, append(EnvelopeMisfits(tt.namespace, data, ChangedEntries(nil, data)), problems...))
			var got []string
			for _, access := range needed {
				got = append(got, access.Path.String()+": "+access.String())
			}
			if diff := cmp.Diff(tt.needed, got); diff != "" {
				t.Errorf("needs other rights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAKindThatCannotBeLookedUpIsAnError(t *testing.T) {
	broken := errors.New("no answer")
	data := entries(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)
	_, _, err := ValidateEnvelope("", data, []string{"a"}, func(schema.GroupVersionKind) (author.Resource, bool, error) { return author.Resource{}, false, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of the lookup", err)
	}
}

func TestOnlyWhatChangesIsLookedAt(t *testing.T) {
	older := entries(`{"kind":"A","apiVersion":"v1"}`, `{"kind":"B"}`, `{"kind":"C"}`)
	newer := entries(`{"apiVersion": "v1", "kind": "A"}`, `{"kind":"B","x":1}`)
	newer["new"] = placementv1beta1.EnvelopedObject{RawExtension: runtime.RawExtension{Raw: []byte(`{}`)}}
	if diff := cmp.Diff([]string{"b", "new"}, ChangedEntries(older, newer)); diff != "" {
		t.Errorf("other entries changed (-want +got):\n%s", diff)
	}
}

// FuzzValidateEnvelope: whatever stands in an entry is refused or needs a right.
func FuzzValidateEnvelope(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`), "")
	f.Add([]byte(`{`+rbac+`"kind":"ClusterRoleBinding","metadata":{"name":"x"},"roleRef":[]}`), "")
	f.Add([]byte(`{"apiVersion":1,"kind":{},"metadata":[]}`), "ns")
	f.Fuzz(func(t *testing.T, object []byte, namespace string) {
		data := map[string]placementv1beta1.EnvelopedObject{"k": {RawExtension: runtime.RawExtension{Raw: object}}}
		problems, needed, err := ValidateEnvelope(namespace, data, []string{"k"}, hubResources)
		if err != nil {
			t.Fatal(err)
		}
		if len(problems) == 0 && len(needed) == 0 {
			t.Errorf("%q passes without a right", object)
		}
	})
}
