// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	addonv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1beta1"
)

func TestConvert_BothWays(t *testing.T) {
	tests := map[string]struct{ stored, beta string }{
		"the install namespace is in an annotation": {
			"{kind: ManagedClusterAddOn, spec: {installNamespace: agents}}",
			"{kind: ManagedClusterAddOn, metadata: {annotations: {addon.open-cluster-management.io/v1alpha1-install-namespace: agents}}, spec: {}}",
		},
		"registrations have a type, and the driver is that of the API server's": {
			`{kind: ManagedClusterAddOn, spec: {}, status: {kubeClientDriver: csr, registrations: [
				{signerName: kubernetes.io/kube-apiserver-client, subject: {user: u, groups: [g]}},
				{signerName: example.com/signer, subject: {user: u, organizationUnit: [o]}}]}}`,
			`{kind: ManagedClusterAddOn, spec: {}, status: {registrations: [
				{type: kubeClient, kubeClient: {driver: csr, subject: {user: u, groups: [g]}}},
				{type: customSigner, customSigner: {signerName: example.com/signer, subject: {user: u, organizationUnits: [o]}}}]}}`,
		},
		"a driver without registrations is kept": {
			"{kind: ManagedClusterAddOn, spec: {}, status: {kubeClientDriver: token}}",
			`{kind: ManagedClusterAddOn, metadata: {annotations: {fleetgate.io/v1alpha1-fields: '{"kubeClientDriver":"token"}'}}, spec: {}, status: {}}`,
		},
		"organizational units of an identity for the API server are kept": {
			"{kind: ManagedClusterAddOn, spec: {}, status: {registrations: [{signerName: kubernetes.io/kube-apiserver-client, subject: {organizationUnit: [o]}}]}}",
			`{kind: ManagedClusterAddOn, metadata: {annotations: {fleetgate.io/v1alpha1-fields: '{"organizationUnits":{"0":["o"]}}'}},
				spec: {}, status: {registrations: [{type: kubeClient, kubeClient: {subject: {}}}]}}`,
		},
		"names of configurations are those of the desired ones": {
			"{kind: ManagedClusterAddOn, spec: {}, status: {configReferences: [{group: g, resource: r, namespace: a, name: b, desiredConfig: {namespace: a, name: b, specHash: h}}]}}",
			"{kind: ManagedClusterAddOn, spec: {}, status: {configReferences: [{group: g, resource: r, desiredConfig: {namespace: a, name: b, specHash: h}}]}}",
		},
		"other names of configurations are kept": {
			"{kind: ManagedClusterAddOn, spec: {}, status: {configReferences: [{group: g, resource: r, name: b}]}}",
			`{kind: ManagedClusterAddOn, metadata: {annotations: {fleetgate.io/v1alpha1-fields: '{"configReferents":{"0":{"group":"g","resource":"r","name":"b"}}}'}},
				spec: {}, status: {configReferences: [{group: g, resource: r}]}}`,
		},
		"kinds of configurations have a default or a reserved name": {
			"{kind: ClusterManagementAddOn, spec: {supportedConfigs: [{group: g, resource: a, defaultConfig: {namespace: ns, name: d}}, {group: g, resource: b}]}, status: {defaultconfigReferences: []}}",
			"{kind: ClusterManagementAddOn, spec: {defaultConfigs: [{group: g, resource: a, namespace: ns, name: d}, {group: g, resource: b, name: __reserved_no_default__}]}, status: {defaultConfigReferences: []}}",
		},
		"the former configuration is kept": {
			"{kind: ClusterManagementAddOn, spec: {addOnConfiguration: {crdName: c, lastObservedGeneration: 2}}}",
			`{kind: ClusterManagementAddOn, metadata: {annotations: {fleetgate.io/v1alpha1-fields: '{"addOnConfiguration":{"crdName":"c","lastObservedGeneration":2}}'}}, spec: {}}`,
		},
		"fields of newer definitions are kept": {
			"{kind: ManagedClusterAddOn, metadata: {labels: {a: b}}, spec: {x: {y: 1}}, status: {z: [1], registrations: [{signerName: a.io/b, later: 1}]}}",
			"{kind: ManagedClusterAddOn, metadata: {labels: {a: b}}, spec: {x: {y: 1}}, status: {z: [1], registrations: [{type: customSigner, customSigner: {signerName: a.io/b}, later: 1}]}}",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			stored, beta := parse(t, tc.stored), parse(t, tc.beta)
			if got := converted(t, addonv1alpha1.GroupVersion.String(), tc.stored, addonv1beta1.GroupVersion.String()); cmp.Diff(beta, got) != "" {
				t.Errorf("v1beta1 (-want +got):\n%s", cmp.Diff(beta, got))
			}
			if got := converted(t, addonv1beta1.GroupVersion.String(), tc.beta, addonv1alpha1.GroupVersion.String()); cmp.Diff(stored, got) != "" {
				t.Errorf("v1alpha1 (-want +got):\n%s", cmp.Diff(stored, got))
			}
		})
	}
}

// TestConvert_FollowsChangesOfClients shows that saved fields do not undo what a client changed.
func TestConvert_FollowsChangesOfClients(t *testing.T) {
	const beta = `{kind: ManagedClusterAddOn, metadata: {annotations: {fleetgate.io/v1alpha1-fields: '{"kubeClientDriver":"csr","configReferents":{"0":{"group":"g","resource":"r","name":"former"},"9":{"resource":"x","name":"x"}}}'}},
		spec: {}, status: {registrations: [{type: kubeClient, kubeClient: {driver: token}}], configReferences: [{group: g, resource: r, desiredConfig: {name: new}}]}}`
	const want = `{kind: ManagedClusterAddOn, spec: {}, status: {kubeClientDriver: token, registrations: [{signerName: kubernetes.io/kube-apiserver-client}],
		configReferences: [{group: g, resource: r, name: new, desiredConfig: {name: new}}]}}`
	if diff := cmp.Diff(parse(t, want), converted(t, addonv1beta1.GroupVersion.String(), beta, addonv1alpha1.GroupVersion.String())); diff != "" {
		t.Errorf("v1alpha1 (-want +got):\n%s", diff)
	}
}

func TestConvert_RefusesWhatIsNotExpressible(t *testing.T) {
	annotated := func(key, value string) string {
		return "{kind: ManagedClusterAddOn, metadata: {annotations: {" + key + ": '" + value + "'}}, spec: {}}"
	}
	tests := map[string]struct{ beta, want string }{
		"an install namespace that is none":      {annotated(addonv1beta1.InstallNamespaceAnnotation, "../kube-system"), "must be the name of a namespace"},
		"a long install namespace":               {annotated(addonv1beta1.InstallNamespaceAnnotation, strings.Repeat("a", 64)), "must be the name of a namespace"},
		"saved fields that are no JSON":          {annotated(addonv1beta1.FieldsAnnotation, "x"), "remove the annotation"},
		"saved fields of another type":           {annotated(addonv1beta1.FieldsAnnotation, `{"addOnConfiguration":{"crdName":{}}}`), "remove the annotation"},
		"an unknown saved field":                 {annotated(addonv1beta1.FieldsAnnotation, `{"spec":{}}`), "remove the annotation"},
		"saved fields with more":                 {annotated(addonv1beta1.FieldsAnnotation, `{} {}`), "more than one value"},
		"an unknown saved driver":                {annotated(addonv1beta1.FieldsAnnotation, `{"kubeClientDriver":"x"}`), "must be csr or token"},
		"an incomplete object":                   {"{kind: ClusterManagementAddOn, metadata: {labels: {fleetgate.io/v1alpha1-incomplete: 'true'}}, spec: {}}", "write this object in v1alpha1"},
		"a registration without its field":       {"{kind: ManagedClusterAddOn, spec: {}, status: {registrations: [{type: customSigner}]}}", "status.registrations[0]: exactly"},
		"a registration with both fields":        {"{kind: ManagedClusterAddOn, spec: {}, status: {registrations: [{type: kubeClient, customSigner: {}}]}}", "status.registrations[0]: exactly"},
		"a custom signer that is the API server": {"{kind: ManagedClusterAddOn, spec: {}, status: {registrations: [{type: customSigner, customSigner: {signerName: kubernetes.io/kube-apiserver-client}}]}}", "use type kubeClient"},
		"different drivers":                      {"{kind: ManagedClusterAddOn, spec: {}, status: {registrations: [{type: kubeClient, kubeClient: {driver: csr}}, {type: kubeClient, kubeClient: {driver: token}}]}}", "status.registrations[1]: kubeClient.driver"},
		"a reference without a name":             {"{kind: ManagedClusterAddOn, spec: {}, status: {configReferences: [{resource: r}]}}", "status.configReferences[0].desiredConfig is missing"},
		"no default with a namespace":            {"{kind: ClusterManagementAddOn, spec: {defaultConfigs: [{name: __reserved_no_default__, namespace: ns}]}}", "spec.defaultConfigs[0].namespace must be empty"},
		"a default without a name":               {"{kind: ClusterManagementAddOn, spec: {defaultConfigs: [{}]}}", "spec.defaultConfigs[0].name is missing"},
		"another kind":                           {"{kind: AddOnTemplate}", "cannot convert kind"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, tc.beta)
			object["apiVersion"] = addonv1beta1.GroupVersion.String()
			if err := Convert(object, addonv1alpha1.GroupVersion.String()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// TestConvert_ReadsWhatDoesNotFit shows that an object whose fields exceed the limit for annotations
// can be read, and is refused when it is written: an API server would fail each list with it.
func TestConvert_ReadsWhatDoesNotFit(t *testing.T) {
	const limit = 256 << 10
	tests := map[string]map[string]any{
		"a long field": {"spec": map[string]any{}, "status": map[string]any{"addOnConfiguration": map[string]any{"crName": strings.Repeat("x", limit)}}},
		"annotations up to the limit": {
			"metadata": map[string]any{"annotations": map[string]any{"a": strings.Repeat("x", limit-1)}}, "spec": map[string]any{"installNamespace": "agents"},
		},
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			object["kind"], object["apiVersion"] = "ManagedClusterAddOn", addonv1alpha1.GroupVersion.String()
			if err := Convert(object, addonv1beta1.GroupVersion.String()); err != nil {
				t.Fatal(err)
			}
			if got := size(child(child(object, "metadata"), "annotations")); got > limit {
				t.Errorf("the annotations have %d bytes", got)
			}
			if err := Convert(object, addonv1alpha1.GroupVersion.String()); err == nil {
				t.Error("the incomplete object was written")
			}
		})
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "\t", " ")))
	if err != nil {
		t.Fatal(err)
	}
	object, err := read(raw)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// converted returns the converted object without its version.
func converted(t *testing.T, from, text, to string) map[string]any {
	t.Helper()
	object := parse(t, text)
	object["apiVersion"] = from
	if err := Convert(object, to); err != nil {
		t.Fatal(err)
	}
	if object["apiVersion"] != to {
		t.Errorf("got version %v, want %s", object["apiVersion"], to)
	}
	delete(object, "apiVersion")
	if metadata, ok := object["metadata"].(map[string]any); ok && len(metadata) == 0 {
		delete(object, "metadata")
	}
	return object
}

// TestConvert_ReadsDefaultWithReservedName shows that no write in v1beta1 drops such a default.
func TestConvert_ReadsDefaultWithReservedName(t *testing.T) {
	object := parse(t, "{kind: ClusterManagementAddOn, spec: {supportedConfigs: [{resource: r, defaultConfig: {name: __reserved_no_default__}}]}}")
	object["apiVersion"] = addonv1alpha1.GroupVersion.String()
	if err := Convert(object, addonv1beta1.GroupVersion.String()); err != nil {
		t.Fatal(err)
	}
	if err := Convert(object, addonv1alpha1.GroupVersion.String()); err == nil {
		t.Error("the incomplete object was written")
	}
}
