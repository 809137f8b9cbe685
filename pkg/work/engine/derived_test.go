// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const webService = "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: "

const webPolicy = "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web}, spec: "

func podTemplate(spec string) string {
	return webDeployment + "}, spec: {template: {spec: " + spec + "}}}"
}

func TestWithDerived(t *testing.T) {
	for name, tc := range map[string]struct {
		before, wanted, live string
		want                 string // the last manifest; as before if empty
	}{
		"alias of an account that left the manifest": {
			before: podTemplate("{serviceAccountName: a}"), wanted: podTemplate("{}"), live: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
			want: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
		},
		"alias of an account in a PodTemplate": {
			before: "{apiVersion: v1, kind: PodTemplate, template: {spec: {serviceAccountName: a}}}", wanted: "{apiVersion: v1, kind: PodTemplate, template: {spec: {}}}",
			live: "{apiVersion: v1, kind: PodTemplate, template: {spec: {serviceAccountName: a, serviceAccount: a}}}",
			want: "{apiVersion: v1, kind: PodTemplate, template: {spec: {serviceAccountName: a, serviceAccount: a}}}",
		},
		"account that was set by its alias": {
			before: podTemplate("{serviceAccount: a}"), wanted: podTemplate("{serviceAccount: b}"), live: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
			want: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
		},
		"alias that the manifest sets": {
			before: podTemplate("{serviceAccountName: a}"), wanted: podTemplate("{serviceAccount: a}"), live: podTemplate("{serviceAccountName: a, serviceAccount: a}"),
		},
		"alias that does not come from the manifest": {
			before: podTemplate("{serviceAccountName: a}"), wanted: podTemplate("{}"), live: podTemplate("{serviceAccountName: a, serviceAccount: b}"),
		},
		"unchanged source": {
			before: podTemplate("{serviceAccountName: a, containers: [{name: c, image: i}]}"),
			wanted: podTemplate("{serviceAccountName: a, containers: [{name: c, image: 'i:latest'}]}"),
			live:   podTemplate("{serviceAccountName: a, serviceAccount: a, containers: [{name: c, image: i, imagePullPolicy: Always}]}"),
		},
		"pull policy from the tag": {
			before: podTemplate("{containers: [{name: c, image: 'example.org:5000/a'}]}"), wanted: podTemplate("{containers: [{name: c, image: 'example.org:5000/a:1'}]}"),
			live: podTemplate("{containers: [{name: c, image: 'example.org:5000/a', imagePullPolicy: Always}]}"),
			want: podTemplate("{containers: [{name: c, image: 'example.org:5000/a', imagePullPolicy: Always}]}"),
		},
		"the same pull policy for another tag": {
			before: podTemplate("{containers: [{name: c, image: 'a:1'}]}"), wanted: podTemplate("{containers: [{name: c, image: 'a@sha256:0'}]}"),
			live: podTemplate("{containers: [{name: c, image: 'a:1', imagePullPolicy: IfNotPresent}]}"),
		},
		"timeout of session affinity": {
			before: webService + "{sessionAffinity: ClientIP}}", wanted: webService + "{sessionAffinity: None}}",
			live: webService + "{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}}}",
			want: webService + "{sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 10800}}}}",
		},
		"types of a policy that gets egress rules": {
			before: webPolicy + "{ingress: [{}]}}", wanted: webPolicy + "{ingress: [{}], egress: [{}]}}",
			live: webPolicy + "{ingress: [{}], policyTypes: [Ingress]}}",
			want: webPolicy + "{ingress: [{}], policyTypes: [Ingress]}}",
		},
		"types of a policy that loses its egress rules": {
			before: webPolicy + "{egress: [{}]}}", wanted: webPolicy + "{ingress: [{}]}}",
			live: webPolicy + "{egress: [{}], policyTypes: [Ingress, Egress]}}",
			want: webPolicy + "{egress: [{}], policyTypes: [Ingress, Egress]}}",
		},
		"types of a policy that the manifest sets": {
			before: webPolicy + "{}}", wanted: webPolicy + "{egress: [{}], policyTypes: [Ingress]}}", live: webPolicy + "{policyTypes: [Ingress]}}",
		},
		"types of a policy that others chose": {
			before: webPolicy + "{}}", wanted: webPolicy + "{egress: [{}]}}", live: webPolicy + "{policyTypes: [Egress]}}",
		},
		"manifest with values of other types": {
			before: podTemplate("{serviceAccountName: {}, containers: [{name: c, image: 1}]}"),
			wanted: podTemplate("{serviceAccountName: {}, containers: [{name: {}}, {name: c}]}"), live: podTemplate("{containers: [{name: c}]}"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := objectOfYAML(t, tc.before)
			text, err := before.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			want := before
			if tc.want != "" {
				want = objectOfYAML(t, tc.want)
			}
			got := withDerived(text, objectOfYAML(t, tc.wanted), objectOfYAML(t, tc.live))
			if diff := cmp.Diff(want.Object, objectOfYAML(t, string(got)).Object); diff != "" {
				t.Errorf("last manifest (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDeriveAgain_SetsTheTypesOfAPolicyThatGetsEgressRules(t *testing.T) {
	e, it := leavingEngine(), Item{Mode: Mode{Method: ServerSide}}
	live := objectOfYAML(t, webPolicy+"{ingress: [{}], policyTypes: [Ingress]}}")
	live.SetManagedFields([]metav1.ManagedFieldsEntry{
		ownedBy(e.Manager, metav1.ManagedFieldsOperationApply, "networking.k8s.io/v1", `{"f:spec":{"f:ingress":{}}}`)})
	for manifest, want := range map[string]string{
		"{ingress: [{}], egress: [{}]}}":                         "{ingress: [{}], egress: [{}], policyTypes: [Ingress, Egress]}}",
		"{ingress: [{}]}}":                                       "{ingress: [{}]}}",
		"{ingress: [{}], egress: [{}], policyTypes: [Ingress]}}": "{ingress: [{}], egress: [{}], policyTypes: [Ingress]}}",
	} {
		desired := objectOfYAML(t, webPolicy+manifest)
		e.deriveAgain(it, desired, live)
		if diff := cmp.Diff(objectOfYAML(t, webPolicy+want).Object, desired.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", manifest, diff)
		}
	}
}
