// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestInherit_KeepsFieldsThatControllersFillIn(t *testing.T) {
	for name, tc := range map[string]struct{ manifest, live, want string }{
		"an account": {
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: t}], imagePullSecrets: [{name: p}], automountServiceAccountToken: true}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: t}], imagePullSecrets: [{name: p}]}`},
		"an account that says": {
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: []}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: p}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: []}`},
		"an account with a Secret of OpenShift": {
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: p}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: old}, {name: a-dockercfg-x7x2b}]}`,
			`{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, imagePullSecrets: [{name: p}, {name: a-dockercfg-x7x2b}]}`},
		"webhooks, by name": {
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: b, clientConfig: {}}, {name: a, clientConfig: {caBundle: own}}, {name: c, clientConfig: {}}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: a, clientConfig: {caBundle: x}}, {name: b, clientConfig: {caBundle: y}}]}`,
			`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: b, clientConfig: {caBundle: y}}, {name: a, clientConfig: {caBundle: own}}, {name: c, clientConfig: {}}]}`},
		"an APIService": {
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {group: g}}`,
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {group: g, caBundle: x}}`,
			`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {group: g, caBundle: x}}`},
		"a definition without conversion": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {webhook: {clientConfig: {caBundle: x}}}}}`,
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {}}`},
		"anything else": {
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, secrets: [1], spec: {caBundle: x}}`,
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`},
	} {
		t.Run(name, func(t *testing.T) {
			object := func(text string) *unstructured.Unstructured {
				object := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
					t.Fatal(err)
				}
				return object
			}
			wanted := object(tc.manifest)
			inherit(wanted, object(tc.live))
			if diff := cmp.Diff(object(tc.want).Object, wanted.Object); diff != "" {
				t.Errorf("wanted (-want +got):\n%s", diff)
			}
		})
	}
}
