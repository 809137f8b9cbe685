// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestResolve_ReadsOnlyProvidersInOwnNamespace(t *testing.T) {
	infrastructure := schema.GroupVersion{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{infrastructure})
	mapper.Add(infrastructure.WithKind("AzureCluster"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	object := func(document string) *fake.ClientBuilder {
		return fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(parse(t, document))
	}
	const azure = `{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureCluster, metadata: {namespace: ours, name: a}}`
	const secret = `{apiVersion: v1, kind: Secret, metadata: {namespace: ours, name: a}}`
	for what, tc := range map[string]struct {
		there, reference string
		want             bool
	}{
		"by group":                          {azure, `{apiGroup: infrastructure.cluster.x-k8s.io, kind: AzureCluster, name: a}`, true},
		"by version, also one that is gone": {azure, `{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha4, kind: AzureCluster, name: a}`, true},
		"in another namespace":              {azure, `{apiGroup: infrastructure.cluster.x-k8s.io, kind: AzureCluster, name: b, namespace: theirs}`, false},
		"a kind that nobody serves":         {azure, `{apiGroup: infrastructure.cluster.x-k8s.io, kind: Other, name: a}`, false},
		"a Secret":                          {secret, `{apiVersion: v1, kind: Secret, name: a}`, false},
		"a group that only looks so":        {azure, `{apiGroup: infrastructure.cluster.x-k8s.io.evil, kind: AzureCluster, name: a}`, false},
		"no reference":                      {azure, `{}`, false},
	} {
		t.Run(what, func(t *testing.T) {
			c := object(tc.there).Build()
			r := &reconciler{Importer: &Importer{Client: c, Live: c}}
			from := parse(t, `{metadata: {namespace: ours, name: x}, spec: {infrastructureRef: `+tc.reference+`}}`)
			found, err := r.resolve(t.Context(), from, "spec", "infrastructureRef")
			if err != nil {
				t.Fatal(err)
			}
			if (found != nil) != tc.want {
				t.Errorf("found %v", found)
			}
		})
	}
}

func TestServedVersion_IsNewest(t *testing.T) {
	definition := func(established bool, versions ...string) *apiextensionsv1.CustomResourceDefinition {
		d := &apiextensionsv1.CustomResourceDefinition{}
		for _, v := range versions {
			d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v, Served: v != "v1"})
		}
		if established {
			d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		}
		return d
	}
	deleted := definition(true, "v1beta1")
	now := metav1.Now()
	deleted.DeletionTimestamp = &now
	got := map[string]string{
		"none":                           servedVersion(&apiextensionsv1.CustomResourceDefinition{}),
		"not established":                servedVersion(definition(false, "v1beta1")),
		"the newest that is served":      servedVersion(definition(true, "v1alpha4", "v1beta2", "v1beta1", "v1")),
		"one of which is on its way out": servedVersion(deleted),
	}
	want := map[string]string{"none": "", "not established": "", "the newest that is served": "v1beta2", "one of which is on its way out": ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Versions differ (-want +got):\n%s", diff)
	}
}
