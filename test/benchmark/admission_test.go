// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/capz"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/test/support/env"
)

// enforcedBy labels namespaces with the enforcement that checks their objects.
const enforcedBy = "enforced-by"

// BenchmarkAdmission measures the update of a managed control plane: with the whole pack for
// Cluster API on Azure enforced by the gateway; with the policies that the API server can enforce
// itself, once by the gateway and once natively; and without policies. Before that it measures
// reviews of a placement at 100 per second, through the hub's API server and directly at the
// gateway's port. "gateway-cpu-ms" and "hub-cpu-ms" are the CPU time of one update on the gateway
// and the hub's control plane, the figures that depend least on other load.
func BenchmarkAdmission(b *testing.B) {
	f := startFleet(b, "admission")
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, admissionv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			b.Fatal(err)
		}
	}
	config := f.Hub.Config()
	config.QPS = -1
	hub, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("review-rate", func(b *testing.B) { sideBySide(b, reviewing(b, f, hub)...) })
	prepareHub(b, hub)
	processes := map[string][]int{"gateway-cpu-ms": {f.Gateway.PID()}}
	for _, p := range f.Hub.Processes() {
		processes["hub-cpu-ms"] = append(processes["hub-cpu-ms"], p.PID())
	}
	var variants []variant
	for _, by := range []string{"gateway", "gateway-exportable", "native", "nobody"} {
		variants = append(variants, updating(b, hub, by, processes))
	}
	b.Run("update", func(b *testing.B) { sideBySide(b, variants...) })
}

// prepareHub installs the provider's CRDs, and the pack for each enforcement.
func prepareHub(b *testing.B, hub client.Client) {
	b.Helper()
	dir := os.Getenv("FLEETGATE_SCHEMAS")
	if dir == "" {
		home, err := env.Home()
		if err != nil {
			b.Fatal(err)
		}
		dir = filepath.Join(home, "..", "..", "shared", "schemas")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "capz", "*.yaml"))
	if err != nil || len(paths) == 0 {
		b.Fatalf("no definitions in %s (%v): set FLEETGATE_SCHEMAS", dir, err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			b.Fatal(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, definition); err != nil {
			b.Fatal(err)
		}
		definition.Spec.Conversion, definition.Status = nil, apiextensionsv1.CustomResourceDefinitionStatus{}
		createWithin(b, hub, definition)
	}
	createWithin(b, hub, clusterDefinition())
	policies, err := capz.Policies()
	if err != nil {
		b.Fatal(err)
	}
	for _, policy := range policies {
		if exported, binding, err := immutability.Export(by(policy, "native")); err == nil {
			createWithin(b, hub, exported)
			createWithin(b, hub, binding)
			same := by(policy, "gateway-exportable")
			same.Name = "exportable-" + same.Name
			createWithin(b, hub, same)
		}
		createWithin(b, hub, by(policy, "gateway"))
	}
}

// clusterDefinition is Cluster API's own kind, which the pack looks up. Its schema does not matter
// here.
func clusterDefinition() *apiextensionsv1.CustomResourceDefinition {
	keep, group := true, "cluster.x-k8s.io"
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusters." + group, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for a benchmark"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "Cluster", Plural: "clusters"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep}},
			}},
		},
	}
}

// by restricts a policy to the namespaces of one enforcement.
func by(policy *admissionv1alpha1.ImmutabilityPolicy, variant string) *admissionv1alpha1.ImmutabilityPolicy {
	policy = policy.DeepCopy()
	policy.Spec.Match.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{enforcedBy: variant}}
	return policy
}

// updating returns a measurement: one object in its own namespace, whose tags change.
func updating(b *testing.B, hub client.Client, by string, processes map[string][]int) variant {
	b.Helper()
	createWithin(b, hub, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: by, Labels: map[string]string{enforcedBy: by}}})
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(controlPlane), &object.Object); err != nil {
		b.Fatal(err)
	}
	object.SetNamespace(by)
	createWithin(b, hub, object)
	if by != "nobody" {
		awaitRefusal(b, hub, object)
	}
	var took []time.Duration
	used := map[string]time.Duration{}
	w := variant{name: by, figures: map[string]float64{}}
	w.do = func(ctx context.Context) (time.Duration, error) {
		if err := unstructured.SetNestedField(object.Object, fmt.Sprint(len(took)), "spec", "additionalTags", "n"); err != nil {
			return 0, err
		}
		before := cpuOfAll(b, processes)
		spent, err := timed(func(ctx context.Context) error { return hub.Update(ctx, object) })(ctx)
		took = append(took, spent)
		for unit, after := range cpuOfAll(b, processes) {
			used[unit] += after - before[unit]
			w.figures[unit] = used[unit].Seconds() * 1000 / float64(len(took))
		}
		sorted := slices.Sorted(slices.Values(took))
		w.figures["p50-ms"] = sorted[len(sorted)/2].Seconds() * 1000
		w.figures["p99-ms"] = sorted[len(sorted)*99/100].Seconds() * 1000
		return spent, err
	}
	return w
}

func cpuOfAll(b *testing.B, processes map[string][]int) map[string]time.Duration {
	b.Helper()
	used := map[string]time.Duration{}
	for unit, pids := range processes {
		for _, pid := range pids {
			used[unit] += cpuOf(b, pid)
		}
	}
	return used
}

// awaitRefusal waits until a change of an immutable field is rejected.
func awaitRefusal(b *testing.B, hub client.Client, object *unstructured.Unstructured) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		moved := object.DeepCopy()
		if err := unstructured.SetNestedField(moved.Object, "elsewhere", "spec", "location"); err != nil {
			return false, err
		}
		return apierrors.IsInvalid(hub.Update(ctx, moved, client.DryRunAll)), nil
	})
	if err != nil {
		b.Fatalf("%s: an immutable field can still be changed: %v", object.GetNamespace(), err)
	}
}

// createWithin retries the creation until the hub serves the kind.
func createWithin(b *testing.B, hub client.Client, object client.Object) {
	b.Helper()
	var last error
	err := wait.PollUntilContextTimeout(b.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = hub.Create(ctx, object)
		if apierrors.IsInvalid(last) {
			return false, last // A retry does not help.
		}
		return last == nil || apierrors.IsAlreadyExists(last), nil
	})
	if err != nil {
		b.Fatalf("creating %T %s: %v", object, object.GetName(), last)
	}
}

const controlPlane = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedControlPlane
metadata: {name: aks, labels: {cluster.x-k8s.io/cluster-name: aks}}
spec:
  identityRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, name: absent}
  subscriptionID: 00000000-0000-0000-0000-000000000000
  resourceGroupName: rg
  location: westeurope
  dnsServiceIP: 10.1.0.10
  networkPlugin: azure
  networkPolicy: azure
  version: v1.27.3
  virtualNetwork: {name: vnet, cidrBlock: 10.0.0.0/8, resourceGroup: rg, subnet: {name: subnet, cidrBlock: 10.240.0.0/16}}
  apiServerAccessProfile: {authorizedIPRanges: [1.2.3.0/24], enablePrivateCluster: true}
  addonProfiles: [{name: azurepolicy, enabled: true}]
  aadProfile: {managed: true, adminGroupObjectIDs: [g]}
  extensions: [{name: flux, extensionType: microsoft.flux, releaseTrain: Stable, scope: {scopeType: Cluster, releaseNamespace: flux}}]
  additionalTags: {a: b}
`
